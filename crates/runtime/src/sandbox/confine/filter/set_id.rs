//! Filter of set-id bits: a program with such a bit in a folder that runs write would be one of the worker's user, for every
//! user of the host.

use std::collections::BTreeMap;

use libc::{O_CREAT, O_DIRECTORY, O_TMPFILE, S_ISGID, S_ISUID};
use seccompiler::{BackendError, SeccompCmpOp, SeccompRule};

use super::{Rules, condition, has_bit};

/// Bits that let a program run with the rights of its owner.
const BITS: [u32; 2] = [S_ISUID, S_ISGID];
/// Flags with which a call that opens files also creates one.
const CREATES: [i32; 2] = [O_CREAT, O_TMPFILE & !O_DIRECTORY];
/// Number of this call in all architectures; the C library has no name for it in some.
const FCHMODAT2: i64 = 452;

/// Calls that set a mode, with the number of the argument.
const SET: &[(i64, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mkdir, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    (libc::SYS_mkdirat, 2),
    (libc::SYS_mknodat, 2),
];

/// Calls that open files, with the number of the argument for flags. The mode follows, and has a meaning only for a new file.
const OPEN: &[(i64, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
    (libc::SYS_openat, 2),
];

/// Returns rules that refuse these bits in all calls whose arguments have a mode.
pub(super) fn rules() -> Result<Rules, BackendError> {
    let mut rules: Rules = BTreeMap::new();
    for (number, argument) in SET {
        let bits = BITS.map(|bit| has_bit(*argument, bit.cast_signed()));
        let bits = bits.into_iter().collect::<Result<_, _>>()?;
        rules.insert(*number, bits);
    }
    for (number, flags) in OPEN {
        let mut all = Vec::new();
        for flag in CREATES {
            for bit in BITS.map(u32::cast_signed) {
                let has = |argument, bit: i32| {
                    let mask = SeccompCmpOp::MaskedEq(u64::from(bit.cast_unsigned()));
                    condition(argument, mask, bit)
                };
                all.push(SeccompRule::new(vec![
                    has(*flags, flag)?,
                    has(*flags + 1, bit)?,
                ])?);
            }
        }
        rules.insert(*number, all);
    }
    Ok(rules)
}
