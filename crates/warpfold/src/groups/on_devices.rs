//! Groups that a device answers as far as it can, and the CPU for the rest.

use super::answer::{GroupColumn, Grouped, KeyValues};
use super::by::{GroupBy, Order};
use super::keys::{Items, KeyColumn, Keys};
use crate::answer::Column;
use crate::array::{Array, Place};
use crate::device::Device;
use crate::devices::{self, DeviceArray, OnHost};
use crate::initial;
use warpfold_core::layout::{Input, View};
use warpfold_core::op::{Numbers, Op};
use warpfold_core::{DType, Error, Result};

/// What a device makes of groups.
pub(crate) struct Made {
    /// The keys of all groups, of each column.
    pub(crate) keys: Vec<Numbers>,
    /// Which groups have rows, where others have answers too.
    pub(crate) present: Option<Vec<u8>>,
    /// For each operation the numbers of its halves, where the device makes them.
    pub(crate) parts: Vec<Vec<Option<Numbers>>>,
}

impl Made {
    /// The answers to an operation, if the device has made them.
    fn column(&self, op: Op, parts: &[Option<Numbers>]) -> Option<GroupColumn> {
        let mut parts = parts.iter().cloned().collect::<Option<Vec<_>>>()?.into_iter();
        let (numbers, second) = (parts.next()?, parts.next());
        let missing = match (op, &self.present) {
            (Op::Min | Op::Max | Op::MinMax, Some(present)) => {
                (0..present.len()).filter(|&group| present[group] == 0).collect()
            }
            _ => Vec::new(),
        };
        Some(GroupColumn { column: Column { op, numbers, second }, missing })
    }
}

/// A column in which no row lacks a value.
fn whole<'a>(input: &'a Input<'_>) -> Result<Option<View<'a>>> {
    if input.missing() > 0 { Ok(None) } else { input.view().map(Some) }
}

impl GroupBy<'_> {
    /// The answers about arrays wherever they lie.
    pub(super) fn answer_anywhere(&self, arrays: Vec<Array<'_>>) -> Result<Grouped> {
        initial::of_no_groups(&self.reduction)?;
        let mut host = Vec::new();
        let mut device = Vec::new();
        for array in arrays {
            match array.into_place() {
                Place::Host(input) => host.push(input),
                Place::Device(array) => device.push(array),
            }
        }
        let keys: Vec<&DeviceArray<'_>> = self.keys.on_device().collect();
        if device.is_empty() && keys.is_empty() {
            return self.answer_sent(&host);
        }
        if !host.is_empty() || keys.len() < self.keys.columns.len() {
            return Err(Error::DeviceMemory {
                what: "some columns lie in the host's memory, others in a device's".into(),
                hint: "copy keys and values to one place",
            });
        }
        self.answer_in_place(&keys, &device)
    }

    /// The same in the host's memory: sent to the device that is named, or by the CPU.
    fn answer_sent(&self, inputs: &[Input<'_>]) -> Result<Grouped> {
        let Some(opened) = devices::of(self.reduction.named_device())? else {
            return self.on_cpu(self.reduction.ops().to_vec()).answer(inputs);
        };
        let ask = |ops: &[Op]| {
            let [values] = inputs else { return Ok(None) };
            let keys = self.keys.columns.iter().map(|column| match &column.items {
                Items::Numbers(keys) => whole(keys),
                _ => Ok(None),
            });
            let keys = keys.collect::<Result<Option<Vec<_>>>>()?;
            let Some((keys, values)) = keys.zip(whole(values)?) else { return Ok(None) };
            let alike = |keys: &View<'_>| keys.shape().len() == 1 && keys.shape() == values.shape();
            if !keys.iter().all(alike) {
                return Ok(None);
            }
            opened.numbers_of_groups((ops, &self.reduction.rules), &keys, &values, self.keys.dense)
        };
        let dtype =
            inputs.first().map(|input| input.view().map(|view| view.dtype())).transpose()?;
        self.shared(dtype, ask, |rest| self.on_cpu(rest).answer(inputs))
    }

    /// The same in a device's memory.
    fn answer_in_place(
        &self,
        keys: &[&DeviceArray<'_>],
        values: &[DeviceArray<'_>],
    ) -> Result<Grouped> {
        let Some(first) = values.first() else { return self.answer_sent(&[]) };
        for other in keys.iter().copied().chain(&values[1..]) {
            first.check_beside(&self.reduction, Some(other))?;
        }
        let alike = |keys: &&DeviceArray<'_>| {
            keys.shape().len() == 1 && values.iter().all(|values| keys.shape() == values.shape())
        };
        let ask = |ops: &[Op]| match values {
            [values] if keys.iter().all(alike) => {
                values.numbers_of_groups((ops, &self.reduction.rules), keys, self.keys.dense)
            }
            _ => Ok(None),
        };
        let on_cpu = |rest: Vec<Op>| {
            let held = values.iter().map(DeviceArray::to_host).collect::<Result<Vec<_>>>()?;
            let views = held.iter().map(OnHost::view).collect::<Result<Vec<View<'_>>>>()?;
            let inputs: Vec<Input<'_>> = views.into_iter().map(Input::from).collect();
            let held = keys.iter().map(|keys| keys.to_host()).collect::<Result<Vec<_>>>()?;
            let columns = held.iter().map(|held| Ok(KeyColumn::from(held.view()?)));
            let columns = columns.collect::<Result<Vec<_>>>()?;
            let by = self.on_cpu(rest);
            GroupBy { keys: Keys { columns, ..by.keys }, ..by }.answer(&inputs)
        };
        self.shared(Some(first.dtype()), ask, on_cpu)
    }

    /// The question of some operations, for the CPU.
    fn on_cpu(&self, ops: Vec<Op>) -> GroupBy<'_> {
        let reduction = self.reduction.with_ops(ops).device(Device::Cpu);
        GroupBy { reduction, ..self.clone() }
    }

    /// The answers, those that a device makes by `ask` and the others by `on_cpu`, which also
    /// says what is wrong with a question.
    fn shared(
        &self,
        dtype: Option<DType>,
        ask: impl FnOnce(&[Op]) -> Result<Option<Made>>,
        on_cpu: impl Fn(Vec<Op>) -> Result<Grouped>,
    ) -> Result<Grouped> {
        let ops = self.reduction.ops();
        let usual = |op: &Op| {
            let rules = &self.reduction.rules;
            let fits = |dtype| op.supports(dtype) && devices::knows(*op, dtype, rules);
            op.arity() == 1 && dtype.is_some_and(fits)
        };
        let asked: Vec<Op> = ops.iter().copied().filter(usual).collect();
        if asked.is_empty() || self.order != Order::Key {
            return on_cpu(ops.to_vec());
        }
        let Some(made) = ask(&asked)? else { return on_cpu(ops.to_vec()) };
        let mut columns: Vec<Option<GroupColumn>> = Vec::with_capacity(ops.len());
        let mut parts = made.parts.iter();
        for op in ops {
            let its = if asked.contains(op) { parts.next() } else { None };
            columns.push(its.and_then(|its| made.column(*op, its)));
        }
        let lacking = ops.iter().zip(&columns).filter(|(_, column)| column.is_none());
        let rest: Vec<Op> = lacking.map(|(&op, _)| op).collect();
        if !rest.is_empty() {
            let mut others = on_cpu(rest)?.columns.into_iter();
            for column in columns.iter_mut().filter(|column| column.is_none()) {
                *column = others.next();
            }
        }
        let columns: Vec<GroupColumn> = columns.into_iter().flatten().collect();
        let groups = made.keys.first().map_or(0, Numbers::len);
        let units = self.keys.columns.iter().map(|column| column.unit.clone());
        let keys = made.keys.into_iter().zip(units);
        let keys = keys.map(|(keys, unit)| KeyValues::of_numbers(keys, unit, Vec::new())).collect();
        Ok(Grouped { keys, columns, groups })
    }
}
