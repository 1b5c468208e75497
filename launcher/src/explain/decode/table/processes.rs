//! Calls on processes, users, signals, time, memory and the kernel itself.

use crate::explain::decode::names;
use crate::explain::decode::table::Argument::{
    Choice, Clone, Clone3, Flags, Hex, Int, Mode, Pointer, Signal, Size, Skip, Text,
};
use crate::explain::decode::table::Signature;

pub static CALLS: &[Signature] = &[
    // Starting, ending, waiting.
    ("clone", &[Clone]),
    ("clone3", &[Clone3(1)]),
    ("fork vfork", &[]),
    ("exit exit_group", &[Int]),
    ("wait4", &[Int, Skip, Hex]),
    ("waitid", &[Int, Int, Skip, Hex]),
    ("unshare", &[Flags(&names::CLONE3)]),
    ("setns", &[Int, Flags(&names::NAMESPACE)]),
    ("prctl", &[Choice(names::PRCTL), Hex]),
    ("arch_prctl", &[Choice(names::ARCH_PRCTL), Hex]),
    ("personality", &[Flags(&names::PERSONALITY)]),
    ("seccomp", &[Choice(names::SECCOMP), Flags(&names::SECCOMP_FLAGS)]),
    ("set_tid_address set_robust_list rseq futex_wake futex_wait futex_requeue", &[Pointer]),
    ("futex", &[Pointer, Hex, Int]),
    ("futex_waitv", &[Pointer, Int]),
    ("membarrier pidfd_open", &[Int, Hex]),
    ("restart_syscall rseq_slice_yield uretprobe uprobe", &[]),
    // Other processes.
    ("process_vm_readv process_vm_writev process_mrelease get_robust_list", &[Int]),
    ("ptrace pidfd_getfd", &[Int, Int]),
    ("kcmp", &[Int, Int, Int]),
    ("process_madvise", &[Int, Skip, Size, Int]),
    // Users and other facts.
    (
        "getpid getppid gettid getuid getgid geteuid getegid getpgrp setsid getresuid getresgid uname sysinfo getcpu \
         times sched_yield",
        &[],
    ),
    (
        "getpgid getsid getgroups setgroups setuid setgid setfsuid setfsgid getrusage sched_getaffinity \
         sched_setaffinity sched_getparam sched_setparam sched_getscheduler sched_getattr sched_setattr \
         sched_rr_get_interval",
        &[Int],
    ),
    ("setpgid setreuid setregid", &[Int, Int]),
    ("setresuid setresgid", &[Int, Int, Int]),
    ("capget capset", &[Pointer]),
    ("getrandom", &[Skip, Size, Hex]),
    ("getrlimit setrlimit", &[Choice(names::RESOURCES)]),
    ("prlimit64", &[Int, Choice(names::RESOURCES), Pointer]),
    ("getpriority", &[Choice(names::PRIORITY_WHO), Int]),
    ("setpriority", &[Choice(names::PRIORITY_WHO), Int, Int]),
    ("ioprio_get", &[Choice(names::IOPRIO_WHO), Int]),
    ("ioprio_set", &[Choice(names::IOPRIO_WHO), Int, Hex]),
    ("sched_setscheduler", &[Int, Choice(names::SCHEDULERS)]),
    ("sched_get_priority_max sched_get_priority_min", &[Choice(names::SCHEDULERS)]),
    // Signals.
    ("kill tkill rt_sigqueueinfo pidfd_send_signal", &[Int, Signal]),
    ("tgkill rt_tgsigqueueinfo", &[Int, Int, Signal]),
    ("rt_sigaction", &[Signal, Pointer]),
    ("rt_sigprocmask", &[Int]),
    ("rt_sigpending rt_sigsuspend rt_sigtimedwait rt_sigreturn sigaltstack pause", &[]),
    // Time.
    ("time gettimeofday nanosleep", &[]),
    (
        "clock_gettime clock_getres clock_settime clock_adjtime alarm getitimer setitimer timer_create \
         timer_settime timer_gettime timer_getoverrun timer_delete",
        &[Int],
    ),
    ("clock_nanosleep", &[Int, Hex]),
    ("settimeofday", &[Pointer, Pointer]),
    ("adjtimex", &[Pointer]),
    // Memory.
    ("mmap", &[Skip, Size, Flags(&names::PROT), Flags(&names::MAP), Int, Hex]),
    ("mprotect", &[Pointer, Size, Flags(&names::PROT)]),
    ("pkey_mprotect", &[Pointer, Size, Flags(&names::PROT), Int]),
    ("madvise", &[Pointer, Size, Choice(names::MADVICE)]),
    ("brk shmdt", &[Pointer]),
    ("munmap remap_file_pages mseal mincore mlock munlock", &[Pointer, Size]),
    ("mremap", &[Pointer, Size, Size, Hex]),
    ("msync mlock2", &[Pointer, Size, Hex]),
    ("mbind set_mempolicy_home_node", &[Pointer, Size, Int]),
    ("map_shadow_stack", &[Hex, Size, Hex]),
    ("pkey_alloc", &[Hex, Hex]),
    ("mlockall", &[Hex]),
    ("pkey_free set_mempolicy migrate_pages", &[Int]),
    ("munlockall get_mempolicy", &[]),
    ("move_pages", &[Int, Size]),
    // System V IPC.
    ("shmget", &[Hex, Size, Mode]),
    ("shmat", &[Int, Pointer, Hex]),
    ("semget", &[Hex, Int, Mode]),
    ("msgget", &[Hex, Mode]),
    ("semop semtimedop", &[Int]),
    ("shmctl msgctl", &[Int, Int]),
    ("semctl", &[Int, Int, Int]),
    ("msgsnd msgrcv", &[Int, Skip, Size]),
    // The kernel itself.
    ("lsm_list_modules vhangup", &[]),
    ("io_uring_setup lsm_get_self_attr lsm_set_self_attr iopl modify_ldt syslog", &[Int]),
    ("io_uring_register landlock_add_rule", &[Int, Int]),
    ("io_uring_enter", &[Int, Int, Int, Hex]),
    ("landlock_create_ruleset", &[Pointer, Size, Hex]),
    ("landlock_restrict_self keyctl", &[Int, Hex]),
    ("bpf", &[Int, Skip, Size]),
    ("perf_event_open", &[Pointer, Int, Int, Int, Hex]),
    ("userfaultfd", &[Hex]),
    ("add_key", &[Text, Text, Skip, Size, Int]),
    ("request_key", &[Text, Text, Skip, Int]),
    ("init_module", &[Skip, Size, Text]),
    ("finit_module", &[Int, Text, Hex]),
    ("delete_module", &[Text, Hex]),
    ("kexec_load", &[Hex, Size, Skip, Hex]),
    ("kexec_file_load", &[Int, Int, Skip, Skip, Hex]),
    ("reboot", &[Skip, Skip, Hex]),
    ("ioperm", &[Hex, Size, Int]),
    ("set_thread_area get_thread_area", &[Pointer]),
    // Their names are set by length, not up to a NUL.
    ("sethostname setdomainname", &[Skip, Size]),
];
