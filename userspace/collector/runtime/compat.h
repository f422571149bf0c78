/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Ties the collector to the oldest versions of libc's symbols, so that it loads into processes with
 * an older libc than the one it was built with. Every .c file of the collector includes this.
 */
#ifndef GP_COLLECTOR_RUNTIME_COMPAT_H
#define GP_COLLECTOR_RUNTIME_COMPAT_H

#include <features.h>

#if defined(__x86_64__) && defined(__GLIBC__)
#define GP_OLD_SYMBOL(name) __asm__(".symver " #name "," #name "@GLIBC_2.2.5")
GP_OLD_SYMBOL(dladdr);
GP_OLD_SYMBOL(dlclose);
GP_OLD_SYMBOL(dlopen);
GP_OLD_SYMBOL(dlsym);
GP_OLD_SYMBOL(pthread_attr_setdetachstate);
GP_OLD_SYMBOL(pthread_create);
GP_OLD_SYMBOL(pthread_getspecific);
GP_OLD_SYMBOL(pthread_key_create);
GP_OLD_SYMBOL(pthread_setspecific);
GP_OLD_SYMBOL(pthread_sigmask);
GP_OLD_SYMBOL(memcpy);
__asm__(".symver dlinfo,dlinfo@GLIBC_2.3.3");
#endif

#endif /* GP_COLLECTOR_RUNTIME_COMPAT_H */
