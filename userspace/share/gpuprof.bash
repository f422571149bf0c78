# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Bash completion for gpuprof. It knows no option itself: `gpuprof __complete WORDS...` prints what may
# come next, one candidate a line, or ":files" and ":commands" for what the shell knows better.

_gpuprof()
{
	local cur=${COMP_WORDS[COMP_CWORD]} line
	local -a words=("${COMP_WORDS[@]:1:COMP_CWORD}")

	COMPREPLY=()
	# Up to the cursor only; bash cuts "--sort=key" into three words.
	[[ $cur == "=" ]] && cur=
	while IFS= read -r line; do
		case $line in
		:files)
			compopt -o filenames 2>/dev/null
			mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$cur")
			;;
		:commands)
			mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -c -- "$cur")
			;;
		*)
			COMPREPLY+=("$line")
			;;
		esac
	done < <("$1" __complete "${words[@]}" 2>/dev/null)
}

complete -F _gpuprof gpuprof
