//! What the columns of a plain message are for, by the number of their names: worked out once for each
//! name, where the options ask nothing that depends on several columns. Their values are simple: none is an
//! object, which might be written leaf by leaf.

use super::declare::{SYSTEM_TIME, VALID_TIME, absent, axis_of, is_partial, operation_of};
use super::fields::Reject;
use super::options::{ColumnChoice, FormatOptions};
use crate::change::{AxisValue, Change, Column, Message};
use asofdb_storage::event::Op;
use asofdb_storage::value::Cell;

/// See the module.
#[derive(Debug)]
pub struct Roles {
    /// By number of the name.
    of_name: Vec<Role>,
    /// Declared columns that a message must have: without one of them it is a matter of the slow way, where
    /// the name may be a path into an object or a field of the envelope.
    wanted: u8,
    /// Some columns are not kept.
    filtered: bool,
    /// Some columns are not kept where they are NULL.
    ignores: bool,
}

/// What a column is for, beside being one.
#[derive(Clone, Copy, Debug, Default)]
struct Role {
    /// Of [`OPERATION`] and its like.
    declared: u8,
    kept: bool,
    /// It is not kept where it is NULL, unless the row ends.
    ignored: bool,
}

const OPERATION: u8 = 1;
const VALID: u8 = 2;
const SYSTEM: u8 = 4;
const OPERATION_ID: u8 = 8;

impl Roles {
    /// `None` where the options ask for more than roles of single columns.
    pub fn new(options: &FormatOptions) -> Option<Roles> {
        let simple = options.valid_end.is_none()
            && options.tie_break.is_empty()
            && options.columns_to_update.is_none()
            && options.delete_when.is_none()
            && options.truncate_when.is_none();
        let wanted = [
            (options.op.is_some(), OPERATION),
            (options.valid.is_some(), VALID),
            (options.system.is_some(), SYSTEM),
            (options.operation_id.is_some(), OPERATION_ID),
        ];
        let wanted = wanted.iter().filter(|(declared, _)| *declared).map(|(_, role)| role).sum();
        let filtered = options.columns != ColumnChoice::All;
        let ignores = options.ignore_null.is_some();
        simple.then_some(Roles { of_name: Vec::new(), wanted, filtered, ignores })
    }

    /// Works out the roles of names that are new.
    fn learn<'n>(&mut self, options: &FormatOptions, names: impl Iterator<Item = &'n [u8]>) {
        for name in names.skip(self.of_name.len()).collect::<Vec<_>>() {
            let is = |column: Option<&str>| column.is_some_and(|c| c.as_bytes() == name);
            let mut declared = 0;
            for (column, role) in [
                (options.op.as_deref(), OPERATION),
                (options.valid.as_ref().map(|c| c.column.as_str()), VALID),
                (options.system.as_ref().map(|c| c.column.as_str()), SYSTEM),
                (options.operation_id.as_deref(), OPERATION_ID),
            ] {
                declared |= if is(column) { role } else { 0 };
            }
            let chosen = |choice: &ColumnChoice| std::str::from_utf8(name).is_ok_and(|n| choice.contains(n));
            let ignored = options.ignore_null.as_ref().is_some_and(chosen);
            self.of_name.push(Role { declared, kept: chosen(&options.columns), ignored });
        }
    }

    /// What is particular to the change that columns with numbers of `names` are, as
    /// [`super::declare::plain_change`] has it; its image is still to be set: `image` where the answer says so, else
    /// all columns. `None` if the slow way has to be taken.
    pub fn change<'a, 'n>(
        &mut self,
        options: &FormatOptions,
        names: impl ExactSizeIterator<Item = &'n [u8]>,
        message: &Message<'a>,
        columns: &[Column<'a>],
        numbers: &mut Vec<u16>,
        image: &mut Vec<Column<'a>>,
    ) -> Option<Result<Option<(Plain<'a>, bool)>, Reject>> {
        if self.of_name.len() < names.len() {
            self.learn(options, names);
        }
        let (mut found, mut declared) = (0, [&columns[0]; 4]);
        for (column, number) in columns.iter().zip(&*numbers) {
            let role = self.of_name[*number as usize].declared;
            if role != 0 {
                found |= role;
                (0..4).filter(|bit| role >> bit & 1 == 1).for_each(|bit| declared[bit] = column);
            }
        }
        if found != self.wanted {
            return None;
        }
        let plain = match plain(options, message, declared) {
            Ok(Some(plain)) => plain,
            Ok(None) => return Some(Ok(None)),
            Err(reject) => return Some(Err(reject)),
        };
        let ignores = self.ignores && !plain.op.ends_row();
        let filtered = self.filtered || ignores;
        if filtered {
            self.filter(ignores, columns, numbers, image);
        }
        Some(Ok(Some((plain, filtered))))
    }

    /// Keeps the columns that are chosen.
    fn filter<'a>(
        &self,
        ignores: bool,
        columns: &[Column<'a>],
        numbers: &mut Vec<u16>,
        image: &mut Vec<Column<'a>>,
    ) {
        let mut kept = 0;
        for (i, column) in columns.iter().enumerate() {
            let role = self.of_name[numbers[i] as usize];
            if role.kept && !(ignores && role.ignored && column.cell == Cell::Null) {
                image.push(*column);
                numbers[kept] = numbers[i];
                kept += 1;
            }
        }
        numbers.truncate(kept);
    }
}

fn plain<'a>(
    options: &FormatOptions,
    message: &Message<'a>,
    [operation, valid, system, id]: [&Column<'a>; 4],
) -> Result<Option<Plain<'a>>, Reject> {
    let op = match &options.op {
        None => options.default_op,
        Some(column) => match operation_of(options, column, &operation.cell)? {
            None => return Ok(None),
            Some(op) => op,
        },
    };
    let axis = |column: &Option<_>, role, cell| {
        column.as_ref().map(|column| axis_of(column, role, options, cell)).transpose()
    };
    Ok(Some(Plain {
        op,
        full: op.ends_row() || !is_partial(options, op) && options.ignore_null.is_none(),
        valid_from: axis(&options.valid, VALID_TIME, &valid.cell)?,
        system: axis(&options.system, SYSTEM_TIME, &system.cell)?,
        operation_id: options.operation_id.as_ref().map(|_| id.cell).filter(|c| !absent(c)),
        broker: message.broker_time,
    }))
}

/// What is particular to the change that a plain message is. A change is large: it is made once, where it is
/// handed over.
#[derive(Debug)]
pub struct Plain<'a> {
    op: Op,
    full: bool,
    valid_from: Option<AxisValue>,
    system: Option<AxisValue>,
    operation_id: Option<Cell<'a>>,
    broker: Option<i64>,
}

impl<'a> Plain<'a> {
    /// The change without its columns.
    #[inline]
    pub fn change(&self) -> Change<'a> {
        let mut change = Change::new(self.op);
        change.full = self.full;
        change.declared.valid_from = self.valid_from;
        change.declared.system = self.system;
        change.declared.operation_id = self.operation_id;
        change.times.broker = self.broker;
        change
    }
}
