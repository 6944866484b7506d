//! Box and Markdown tables. On a terminal the middle rows of long results and the middle columns of
//! wide ones are left out, with a note; elsewhere nothing is.

use super::cell::{is_number, write_cell};
use super::escape::visible;
use super::plan::{is_plan, write_plan};
use super::{Options, Renderer, Sink};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use std::collections::VecDeque;
use std::io::{self, Write};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The widest cell on a terminal; longer values end in an ellipsis.
const CELL_COLUMNS_MAX: usize = 60;
/// Columns of a terminal that a cell is cut down to where the row would not fit.
const CELL_COLUMNS_TIGHT: usize = 27;

/// How the lines are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Box drawing characters.
    Box,
    /// A Markdown table; never cut.
    Markdown,
}

/// Holds the rows that will be shown and draws them at the end, when the widths are known.
pub struct Table {
    out: Sink,
    style: Style,
    null: String,
    width: Option<usize>,
    rows_max: usize,
    names: Vec<String>,
    right: Vec<bool>,
    head: Vec<Vec<String>>,
    tail: VecDeque<Vec<String>>,
    rows: usize,
    /// The answer is a plan, which is no table.
    plan: bool,
}

impl Table {
    /// A table to be drawn to `out`.
    pub fn new(out: Sink, options: &Options, style: Style) -> Table {
        let width = options.width.filter(|_| style == Style::Box);
        let null = options.null_or(if style == Style::Box { "NULL" } else { "" });
        let rows_max = if width.is_some() { options.rows_max.max(2) } else { usize::MAX };
        Table {
            out,
            style,
            null,
            width,
            rows_max,
            names: Vec::new(),
            right: Vec::new(),
            head: Vec::new(),
            tail: VecDeque::new(),
            rows: 0,
            plan: false,
        }
    }

    fn text(&self, batch: &RecordBatch, column: usize, row: usize) -> String {
        let mut cell = String::new();
        if !write_cell(&mut cell, batch.column(column), row) {
            return self.null.clone();
        }
        let cell = visible(&cell);
        let cell = match self.style {
            Style::Markdown => cell.replace('\\', "\\\\").replace('|', "\\|").into(),
            Style::Box => cell,
        };
        match self.width {
            Some(_) => clip(&cell, CELL_COLUMNS_MAX),
            None => cell.into_owned(),
        }
    }

    /// Keeps the first half and the last half of the rows that may be shown.
    fn keep(&mut self, batch: &RecordBatch, row: usize) {
        let cells = (0..batch.num_columns()).map(|c| self.text(batch, c, row)).collect();
        self.rows += 1;
        if self.head.len() < self.rows_max.div_ceil(2) || self.width.is_none() {
            self.head.push(cells);
            return;
        }
        if self.tail.len() == self.rows_max / 2 {
            self.tail.pop_front();
        }
        self.tail.push_back(cells);
    }

    /// Whether row `i` of `n` more can no longer be shown.
    fn is_in_the_middle(&self, left_in_batch: usize) -> bool {
        self.width.is_some()
            && self.head.len() >= self.rows_max.div_ceil(2)
            && left_in_batch > self.rows_max / 2
    }

    fn widths(&self, cap: usize) -> Vec<usize> {
        let of = |c: usize| {
            let cells = self.head.iter().chain(&self.tail).map(|r| r[c].width());
            cells.chain([self.names[c].width()]).max().unwrap_or(0).min(cap)
        };
        (0..self.names.len()).map(of).collect()
    }

    /// The columns to show with their widths; `None` stands for those left out.
    fn layout(&self) -> Vec<Option<(usize, usize)>> {
        let wide = self.widths(usize::MAX);
        let fits = |widths: &[usize], screen| widths.iter().map(|w| w + 3).sum::<usize>() < screen;
        let all = |widths: Vec<usize>| widths.into_iter().enumerate().map(Some).collect();
        let Some(screen) = self.width else {
            return all(wide);
        };
        let tight = self.widths(CELL_COLUMNS_TIGHT);
        match (fits(&wide, screen), fits(&tight, screen)) {
            (true, _) => all(wide),
            (false, true) => all(widen(tight, &wide, screen)),
            (false, false) => without_the_middle(&tight, screen),
        }
    }

    fn cell(&self, text: &str, width: usize, right: bool) -> String {
        let text = clip(text, width);
        let pad = " ".repeat(width.saturating_sub(text.width()));
        if right { format!("{pad}{text}") } else { format!("{text}{pad}") }
    }

    fn line(&self, row: &[String], layout: &[Option<(usize, usize)>], header: bool) -> String {
        let bar = if self.style == Style::Box { "\u{2502}" } else { "|" };
        let mut line = String::from(bar);
        for shown in layout {
            let cell = match shown {
                Some((c, width)) => self.cell(&row[*c], *width, self.right[*c] && !header),
                None => "\u{2026}".to_owned(),
            };
            line.push_str(&format!(" {cell} {bar}"));
        }
        line.push('\n');
        line
    }

    fn rule(&self, layout: &[Option<(usize, usize)>], ends: [&str; 3]) -> String {
        let parts = layout.iter().map(|c| "\u{2500}".repeat(2 + c.map_or(1, |(_, width)| width)));
        format!("{}{}{}\n", ends[0], parts.collect::<Vec<_>>().join(ends[1]), ends[2])
    }

    fn draw(&self, layout: &[Option<(usize, usize)>]) -> String {
        let mut out = String::new();
        if self.style == Style::Box {
            out.push_str(&self.rule(layout, ["\u{250c}", "\u{252c}", "\u{2510}"]));
        }
        out.push_str(&self.line(&self.names, layout, true));
        match self.style {
            Style::Box => out.push_str(&self.rule(layout, ["\u{251c}", "\u{253c}", "\u{2524}"])),
            Style::Markdown => {
                for c in layout.iter().flatten() {
                    let dashes = "-".repeat(c.1.max(3) - usize::from(self.right[c.0]));
                    out.push_str(&format!("| {dashes}{} ", if self.right[c.0] { ":" } else { "" }));
                }
                out.push_str("|\n");
            }
        }
        for row in &self.head {
            out.push_str(&self.line(row, layout, false));
        }
        if self.rows > self.head.len() + self.tail.len() {
            let dots = vec!["\u{22ee}".to_owned(); self.names.len()];
            out.push_str(&self.line(&dots, layout, false));
        }
        for row in &self.tail {
            out.push_str(&self.line(row, layout, false));
        }
        if self.style == Style::Box {
            out.push_str(&self.rule(layout, ["\u{2514}", "\u{2534}", "\u{2518}"]));
        }
        out
    }
}

impl Renderer for Table {
    fn begin(&mut self, schema: &SchemaRef) -> io::Result<()> {
        self.names = schema.fields().iter().map(|f| visible(f.name()).into_owned()).collect();
        self.right = schema.fields().iter().map(|f| is_number(f.data_type())).collect();
        (self.head, self.tail, self.rows) = (Vec::new(), VecDeque::new(), 0);
        self.plan = self.style == Style::Box && is_plan(schema);
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch) -> io::Result<()> {
        if self.plan {
            return write_plan(&mut self.out, batch, self.width);
        }
        for row in 0..batch.num_rows() {
            if self.is_in_the_middle(batch.num_rows() - row) {
                self.rows += 1;
            } else {
                self.keep(batch, row);
            }
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<Vec<String>> {
        if self.plan {
            self.out.flush()?;
        }
        if self.plan || self.names.is_empty() {
            return Ok(Vec::new());
        }
        let layout = self.layout();
        self.out.write_all(self.draw(&layout).as_bytes())?;
        self.out.flush()?;
        let shown: Vec<usize> = layout.iter().flatten().map(|(c, _)| *c).collect();
        let mut notes = Vec::new();
        let hidden_rows = self.rows - self.head.len() - self.tail.len();
        if hidden_rows > 0 {
            notes.push(match hidden_rows {
                1 => "1 row in the middle is not shown".to_owned(),
                n => format!("{n} rows in the middle are not shown"),
            });
        }
        if shown.len() < self.names.len() {
            let hidden = (0..self.names.len()).filter(|c| !shown.contains(c));
            let names: Vec<&str> = hidden.map(|c| self.names[c].as_str()).collect();
            notes.push(format!("columns not shown: {} (\\x shows one column a line)", names.join(", ")));
        }
        Ok(notes)
    }
}

/// Gives the room that is left to the columns that were cut, from the left.
fn widen(mut widths: Vec<usize>, wanted: &[usize], screen: usize) -> Vec<usize> {
    let mut room = screen.saturating_sub(1 + widths.iter().map(|w| w + 3).sum::<usize>());
    for (width, wanted) in widths.iter_mut().zip(wanted) {
        let more = (wanted - *width).min(room);
        *width += more;
        room -= more;
    }
    widths
}

/// As many columns as fit, from both ends; at least the first.
fn without_the_middle(widths: &[usize], screen: usize) -> Vec<Option<(usize, usize)>> {
    let (mut left, mut right) = (1, widths.len());
    let mut used = 1 + 4 + widths[0] + 3;
    while left < right {
        let from_left = left <= widths.len() - right;
        let next = if from_left { left } else { right - 1 };
        used += widths[next] + 3;
        if used > screen {
            break;
        }
        if from_left { left += 1 } else { right -= 1 }
    }
    let of = |c: usize| Some((c, widths[c]));
    (0..left).map(of).chain([None]).chain((right..widths.len()).map(of)).collect()
}

/// Columns of a terminal that `text` takes.
pub fn display_width(text: &str) -> usize {
    text.width()
}

/// The text, cut to `width` columns with an ellipsis where it is longer.
pub fn clip(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        let w = c.width().unwrap_or(0);
        if used + w + 1 > width {
            break;
        }
        used += w;
        out.push(c);
    }
    out.push('\u{2026}');
    out
}
