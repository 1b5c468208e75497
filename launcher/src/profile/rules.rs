//! From a profile's calls to the table that a filter program is laid out from.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use sbx_policy::bpf::{self, Insn};
use sbx_policy::calls::{Arch, Call};
use sbx_policy::conditions;
use sbx_policy::program::Program;
use sbx_policy::restrictions::{self, Condition};
use sbx_policy::rules::{Actions, Extra, Grant, Rules, Stage};

use crate::profile::calls::{CallRules, DefaultAction, Grants, Syscalls, When};
use crate::profile::error::{ProfileCause, ProfileError};

/// The free conditions of a profile, compiled: the part of its rules that the table has no room for.
#[derive(Clone, Debug, Default)]
pub struct FreeConditions {
    calls: BTreeMap<u32, Pieces>,
    /// What is looked at before any rule, and the action.
    first: BTreeMap<u32, (Vec<Insn>, u32)>,
}

#[derive(Clone, Debug, Default)]
struct Pieces {
    deny: Vec<Insn>,
    denied: u32,
    allow: Vec<Insn>,
    allowed: u32,
}

impl Syscalls {
    /// The rules for one architecture, in a run with or without namespaces of its own. What the architecture does not
    /// have needs no rule.
    pub fn to_rules(
        &self,
        arch: Arch,
        actions: Actions,
        namespaces: bool,
    ) -> Result<(Box<Rules>, FreeConditions), ProfileError> {
        let unnamed_allowed = self.default.as_deref() == Some(&DefaultAction::Allow);
        // Boxed: as a value it would be copied, and each copy takes pages of stack.
        let mut rules = Box::new(Rules::new(arch, unnamed_allowed, actions));
        let mut free = FreeConditions::default();
        for (call, said) in self.calls.iter() {
            let (Some(number), Some(row)) = (call.number(arch), rules.row_mut(call)) else { continue };
            let allowed = said.allowed(namespaces);
            row.allow = grant(call, allowed);
            row.deny = grant(call, &said.deny);
            row.errno = said.errno.unwrap_or(0);
            row.log = said.log.is_some();
            // Every start comes here for some hundred calls, of which few have conditions.
            if matches!((allowed, &said.deny), (Grants::Some(_), _) | (_, Grants::Some(_))) {
                let pieces = pieces(said, allowed, actions).map_err(|cause| failure(call, said, cause))?;
                free.calls.extend(pieces.map(|pieces| (number, pieces)));
            }
        }
        Ok((rules, free))
    }
}

fn failure(call: Call, said: &CallRules, cause: String) -> ProfileError {
    let mut entries = said.allow.origins().chain(said.inside.origins()).chain(said.deny.origins());
    let profile = entries.next().map_or("", |origin| &origin.profile);
    ProfileError::new(OsStr::new(profile), ProfileCause::Conditions { call: call.name(), cause })
}

/// The named part of a grant. Free conditions alone still make it a conditional one.
fn grant(call: Call, grants: &Grants) -> Grant {
    match grants {
        Grants::None => Grant::None,
        Grants::All(_) => Grant::All,
        Grants::Some(alternatives) => {
            let first = restrictions::of_call(call).start;
            let bits = alternatives.iter().filter_map(|alternative| match alternative.when {
                When::Named(place) => Some(1 << (place - first)),
                When::Free(_) => None,
            });
            Grant::Some(bits.fold(0, |mask: u16, bit: u16| mask | bit))
        }
    }
}

fn pieces(said: &CallRules, allowed: &Grants, actions: Actions) -> Result<Option<Pieces>, String> {
    let (deny, allow) = (compile(&said.deny)?, compile(allowed)?);
    if deny.is_empty() && allow.is_empty() {
        return Ok(None);
    }
    let denied = said.errno.map_or(actions.violation, |errno| bpf::RET_ERRNO | u32::from(errno));
    let allowed = if said.log.is_some() { actions.log } else { bpf::RET_ALLOW };
    Ok(Some(Pieces { deny, denied, allow, allowed }))
}

fn compile(grants: &Grants) -> Result<Vec<Insn>, String> {
    let Grants::Some(alternatives) = grants else { return Ok(Vec::new()) };
    let free = alternatives.iter().filter_map(|alternative| match &alternative.when {
        When::Free(conditions) => Some(conditions.to_vec()),
        When::Named(_) => None,
    });
    let free: Vec<Vec<Condition>> = free.collect();
    if free.is_empty() { Ok(Vec::new()) } else { conditions::compile(&free) }
}

impl FreeConditions {
    /// Whether there are none at all.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.first.is_empty()
    }

    /// Gives a call this action where its conditions allow it.
    pub fn note(&mut self, number: u32, action: u32) {
        if let Some(pieces) = self.calls.get_mut(&number) {
            pieces.allowed = action;
        }
    }

    /// Gives a call this action where all conditions hold, whatever else does.
    pub fn note_first(&mut self, number: u32, conditions: &[Condition], action: u32) {
        let compiled = conditions::compile(&[conditions.to_vec()]);
        compiled.into_iter().for_each(|piece| self.note_where(number, piece, action));
    }

    /// Gives a call this action where a piece of a program returns.
    pub fn note_where(&mut self, number: u32, piece: Vec<Insn>, action: u32) {
        self.first.insert(number, (piece, action));
    }

    /// Forgets the conditions of a call.
    pub fn remove(&mut self, number: u32) {
        self.calls.remove(&number);
    }

    /// Whether there are any for a call.
    pub fn concerns(&self, number: u32) -> bool {
        self.calls.contains_key(&number)
    }
}

impl Extra for FreeConditions {
    fn numbers(&self, each: &mut dyn FnMut(u32)) {
        self.calls.keys().chain(self.first.keys()).copied().for_each(each);
    }

    fn pieces(&self, number: u32, stage: Stage, program: &mut Program<'_>) {
        if let Some((piece, action)) = self.first.get(&number).filter(|_| stage == Stage::First) {
            program.piece(piece, *action);
        }
        let Some(pieces) = self.calls.get(&number) else { return };
        match stage {
            Stage::First => {}
            Stage::Deny => program.piece(&pieces.deny, pieces.denied),
            Stage::Allow => program.piece(&pieces.allow, pieces.allowed),
        }
    }
}
