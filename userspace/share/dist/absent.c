/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Linked into the static executable in place of libraries that it does not use. libmicrohttpd is
 * built with TLS, which the daemon never asks for: it only starts and ends gnutls, and absent_tls()
 * stands for all other functions (dist.mk lists their names). libdw would load libdebuginfod to
 * download debug information; here it finds none.
 */
#include <errno.h>
#include <stdlib.h>

int gnutls_global_init(void);
void gnutls_global_deinit(void);
void absent_tls(void);
int __libdwfl_debuginfod_find_executable(void);
int __libdwfl_debuginfod_find_debuginfo(void);
void __libdwfl_debuginfod_end(void);
void __libdwfl_debuginfod_init(void);

int gnutls_global_init(void)
{
	return 0;
}

void gnutls_global_deinit(void)
{
}

void absent_tls(void)
{
	abort();
}

int __libdwfl_debuginfod_find_executable(void)
{
	return -ENOSYS;
}

int __libdwfl_debuginfod_find_debuginfo(void)
{
	return -ENOSYS;
}

void __libdwfl_debuginfod_end(void)
{
}

void __libdwfl_debuginfod_init(void)
{
}
