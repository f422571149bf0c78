/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What the static executable links in place of libraries that it has no use for. libmicrohttpd is
 * built with TLS, which the daemon never asks for: it does no more than start and end gnutls, and
 * missing_data_tls() stands for all else (the makefile lists those names). libdw would load
 * libdebuginfod to download debug information; here it finds none.
 */
#include <errno.h>
#include <stdlib.h>

int gnutls_global_init(void);
void gnutls_global_deinit(void);
void missing_data_tls(void);
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

void missing_data_tls(void)
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
