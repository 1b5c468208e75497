//! Every directive of a service (systemd.exec(5), systemd.service(5), systemd.resource-control(5), systemd.kill(5)):
//! whether it says something about what a service may do, and whether a profile can say it.

use crate::profile::error::nearest;
use crate::profile::foreign::systemd::values::maybe_truth;

/// What becomes of a directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It is read.
    Read,
    /// It says nothing about what the service may do.
    Other,
    /// Every run holds it, whether the unit says so or not.
    Held,
    /// It cannot be said, for this reason.
    Lost(&'static str),
    /// There is none of this name.
    Unknown,
}

/// The directives that are read.
const READ: &str = "\
    SystemCallFilter SystemCallErrorNumber SystemCallArchitectures SystemCallLog RestrictAddressFamilies \
    MemoryDenyWriteExecute RestrictNamespaces RestrictSUIDSGID RestrictRealtime LockPersonality \
    ProtectKernelModules ProtectKernelLogs ProtectClock ProtectHostname ProtectKernelTunables \
    ProtectControlGroups PrivateNetwork PrivateTmp PrivateDevices \
    ProtectSystem ProtectHome DynamicUser ReadWritePaths ReadOnlyPaths InaccessiblePaths ReadWriteDirectories \
    ReadOnlyDirectories InaccessibleDirectories ExecPaths NoExecPaths BindPaths BindReadOnlyPaths \
    TemporaryFileSystem RuntimeDirectory StateDirectory CacheDirectory LogsDirectory ConfigurationDirectory \
    IPAddressAllow IPAddressDeny CapabilityBoundingSet AmbientCapabilities Environment UnsetEnvironment \
    PassEnvironment LimitNOFILE LimitNPROC LimitFSIZE LimitCPU LimitAS MemoryMax MemoryLimit TasksMax RuntimeMaxSec";

/// How the service is started, stopped, watched and logged; who it is; and its share of the machine.
const OTHER: &str = "\
    Type ExitType RemainAfterExit GuessMainPID PIDFile BusName ExecStart ExecStartPre ExecStartPost ExecCondition \
    ExecReload ExecReloadPost ExecStop ExecStopPost RestartSec RestartSteps RestartMaxDelaySec TimeoutStartSec \
    TimeoutStopSec TimeoutAbortSec TimeoutSec TimeoutStartFailureMode TimeoutStopFailureMode TimeoutCleanSec \
    RuntimeRandomizedExtraSec WatchdogSec Restart RestartMode SuccessExitStatus RestartPreventExitStatus \
    RestartForceExitStatus NonBlocking NotifyAccess Sockets FileDescriptorStoreMax FileDescriptorStorePreserve \
    OOMPolicy ReloadSignal RefreshOnReload PermissionsStartOnly RootDirectoryStartOnly StartLimitInterval \
    StartLimitIntervalSec StartLimitBurst StartLimitAction FailureAction SuccessAction RebootArgument BusPolicy \
    SysVStartPriority StandardInput StandardOutput StandardError StandardInputText StandardInputData LogLevelMax \
    LogExtraFields LogRateLimitIntervalSec LogRateLimitBurst LogFilterPatterns LogNamespace SyslogIdentifier \
    SyslogFacility SyslogLevel SyslogLevelPrefix TTYPath TTYReset TTYVHangup TTYRows TTYColumns TTYVTDisallocate \
    UtmpIdentifier UtmpMode User Group SupplementaryGroups WorkingDirectory PAMName SetLoginEnvironment Nice \
    OOMScoreAdjust TimerSlackNSec CPUSchedulingPolicy CPUSchedulingPriority CPUSchedulingResetOnFork CPUAffinity \
    NUMAPolicy NUMAMask IOSchedulingClass IOSchedulingPriority IgnoreSIGPIPE UMask KillMode KillSignal \
    RestartKillSignal FinalKillSignal SendSIGHUP SendSIGKILL WatchdogSignal SurviveFinalKillSignal Slice Delegate \
    DelegateSubgroup DisableControllers CPUAccounting MemoryAccounting IOAccounting TasksAccounting IPAccounting \
    BlockIOAccounting CPUWeight StartupCPUWeight CPUShares StartupCPUShares IOWeight StartupIOWeight IODeviceWeight \
    BlockIOWeight StartupBlockIOWeight BlockIODeviceWeight IODeviceLatencyTargetSec MemoryMin MemoryLow \
    DefaultMemoryMin DefaultMemoryLow StartupMemoryLow AllowedCPUs StartupAllowedCPUs AllowedMemoryNodes \
    StartupAllowedMemoryNodes ManagedOOMSwap ManagedOOMMemoryPressure ManagedOOMMemoryPressureLimit \
    ManagedOOMMemoryPressureDurationSec ManagedOOMPreference MemoryPressureWatch MemoryPressureThresholdSec \
    CoredumpReceive RuntimeDirectoryMode StateDirectoryMode CacheDirectoryMode LogsDirectoryMode \
    ConfigurationDirectoryMode RuntimeDirectoryPreserve StateDirectoryQuota CacheDirectoryQuota \
    LogsDirectoryQuota StateDirectoryAccounting CacheDirectoryAccounting LogsDirectoryAccounting \
    CPUPressureWatch IOPressureWatch MemoryTHP Personality";

/// A command of a run has no privileges, no keys, no core files, no terminal of the caller's, and a `/proc` and an IPC
/// namespace of its own where it can, whatever rules open. What holds only while no rule opens a place is in `kept`.
const HELD: &str = "\
    NoNewPrivileges KeyringMode SecureBits ProtectProc PrivateMounts PrivateUsers PrivateIPC PrivatePIDs \
    RemoveIPC MountAPIVFS MountFlags LimitCORE";

const ROOT: &str = "a run has no other root directory";
const LIMIT: &str = "a profile has no such limit";
const NETWORK: &str = "a profile has no such rule about the network";
const CREDENTIALS: &str = "a run has no directory of credentials";
const LABELS: &str = "labels of security modules are not set by a run";

/// What cannot be said, with the reason.
const LOST: [(&str, &str); 16] = [
    ("RootDirectory RootImage RootImageOptions RootImagePolicy RootMStack RootEphemeral", ROOT),
    ("RootHash RootHashSignature RootVerity MountImages MountImagePolicy ExtensionImages", ROOT),
    ("ExtensionImageOptions ExtensionImagePolicy ExtensionDirectories", ROOT),
    ("NetworkNamespacePath IPCNamespacePath UserNamespacePath", "a run joins no namespaces"),
    ("SocketBindAllow SocketBindDeny RestrictNetworkInterfaces IPIngressFilterPath", NETWORK),
    ("IPEgressFilterPath NFTSet BPFProgram BindNetworkInterface", NETWORK),
    ("DeviceAllow DevicePolicy", "a rule about devices is one about paths: name the device in paths.write"),
    ("RestrictFileSystems", "no rule of a profile asks which file system a file is on"),
    ("ProcSubset", "a run sees all of its own /proc"),
    ("LimitDATA LimitSTACK LimitRSS LimitMEMLOCK LimitLOCKS LimitSIGPENDING LimitMSGQUEUE", LIMIT),
    ("LimitNICE LimitRTPRIO LimitRTTIME MemoryHigh MemorySwapMax MemoryZSwapMax MemoryZSwapWriteback", LIMIT),
    ("StartupMemoryHigh StartupMemoryMax StartupMemorySwapMax StartupMemoryZSwapMax CPUQuota", LIMIT),
    (
        "CPUQuotaPeriodSec IOReadBandwidthMax IOWriteBandwidthMax IOReadIOPSMax IOWriteIOPSMax CoredumpFilter",
        LIMIT,
    ),
    (
        "LoadCredential LoadCredentialEncrypted SetCredential SetCredentialEncrypted ImportCredential",
        CREDENTIALS,
    ),
    ("SELinuxContext AppArmorProfile SmackProcessLabel", LABELS),
    ("EnvironmentFile OpenFile USBFunctionDescriptors USBFunctionStrings", "no other file is looked into"),
];

/// The directives that cannot be said and are a yes or a no. To others a no is a name or a mistake, which takes nothing
/// back, and 0 is a number.
const TRUTHS: [&str; 2] = ["RootEphemeral", "MemoryZSwapWriteback"];

/// How the names of those begin that `infinity` takes back.
const LIMITS: [&str; 4] = ["Limit", "Memory", "StartupMemory", "CPUQuotaPeriodSec"];

/// A limit that has no `infinity`.
const NEVER_INFINITE: &str = "LimitNICE";

/// Those of which systemd passes over an empty assignment, but for limits of processes.
const NEVER_EMPTY: [&str; 4] = ["DevicePolicy", "ProcSubset", "RootEphemeral", "MemoryZSwapWriteback"];

/// Whether what cannot be said takes something away. Otherwise it is no loss.
pub fn takes_away(name: &str, value: &str) -> bool {
    let is_truth = || TRUTHS.contains(&name) || role(name) == Role::Unknown;
    match value {
        "0" => !TRUTHS.contains(&name),
        // Both limits of a process.
        "infinity:infinity" => name == NEVER_INFINITE || !name.starts_with("Limit"),
        "infinity" => name == NEVER_INFINITE || !LIMITS.iter().any(|start| name.starts_with(start)),
        value => !is_truth() || maybe_truth(value) != Some(false),
    }
}

/// Whether an empty assignment takes back what cannot be said.
pub fn takes_back(name: &str) -> bool {
    !name.starts_with("Limit") && !NEVER_EMPTY.contains(&name)
}

/// The role of a directive.
pub fn role(name: &str) -> Role {
    let is_in = |list: &str| list.split_ascii_whitespace().any(|known| known == name);
    if is_in(READ) {
        Role::Read
    } else if is_in(OTHER) {
        Role::Other
    } else if is_in(HELD) {
        Role::Held
    } else {
        let lost = LOST.iter().find(|(list, _)| is_in(list));
        lost.map_or(Role::Unknown, |(_, why)| Role::Lost(why))
    }
}

/// The directive whose name is most like this one.
pub fn similar(name: &str) -> Option<String> {
    let lost = LOST.iter().map(|(list, _)| *list);
    let known = [READ, OTHER, HELD].into_iter().chain(lost);
    nearest(name, known.flat_map(str::split_ascii_whitespace))
}

/// The directives that are read.
#[cfg(test)]
pub fn read() -> impl Iterator<Item = &'static str> {
    READ.split_ascii_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_directive_has_one_role() {
        let lost = LOST.iter().map(|(list, _)| *list);
        let all = [READ, OTHER, HELD].into_iter().chain(lost);
        let mut known = HashSet::new();
        for name in all.flat_map(str::split_ascii_whitespace) {
            assert!(known.insert(name), "{name} stands twice");
        }
        assert_eq!(role("ReadWritePaths"), Role::Read);
        assert_eq!(role("ReadWritePath"), Role::Unknown);
        assert_eq!(similar("ReadWritePath").as_deref(), Some("ReadWritePaths"));
    }
}
