//! Draws the rectangles of one key: valid time to the right, system time upwards, one letter for
//! each image. Boundaries are spaced evenly, not to scale, so that short stretches can be seen.

use crate::render::{clip, display_width};
use std::fmt::Write;

/// The start of an axis.
pub const BEGINNING: i64 = i64::MIN;
/// The end of an axis.
pub const FOREVER: i64 = i64::MAX;

/// What one belief says of one stretch of valid time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rectangle {
    /// Valid time, half-open.
    pub valid: (i64, i64),
    /// System time, half-open.
    pub system: (i64, i64),
    /// The row as text.
    pub image: String,
}

/// How a drawing is made.
pub struct Canvas<'a> {
    /// Columns it may take.
    pub width: usize,
    /// Whether letters are coloured.
    pub colour: bool,
    /// Labels of the valid axis.
    pub valid_label: &'a dyn Fn(i64) -> String,
    /// Labels of the system axis.
    pub system_label: &'a dyn Fn(i64) -> String,
}

const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const COLOURS: [u8; 6] = [36, 33, 32, 35, 34, 31];
/// Bands of system time that are drawn at most: the newest ones.
const BANDS_MAX: usize = 20;
/// The narrowest column of valid time.
const CELL_COLUMNS_MIN: usize = 2;
/// The widest one.
const CELL_COLUMNS_MAX: usize = 14;

/// The drawing with its legend; empty text for no rectangles.
pub fn draw(rectangles: &[Rectangle], canvas: &Canvas<'_>) -> String {
    if rectangles.is_empty() {
        return String::new();
    }
    let (valid_cuts, system_cuts) = (cuts(rectangles, |r| r.valid), cuts(rectangles, |r| r.system));
    let gutter =
        system_cuts.iter().map(|c| display_width(&(canvas.system_label)(*c))).max().unwrap_or(0).max(6) + 2;
    let room = canvas.width.saturating_sub(gutter + 4).max(CELL_COLUMNS_MIN * 2);
    let columns_max = (room / CELL_COLUMNS_MIN).saturating_sub(1).max(1);
    let (valid_cuts, cut_columns) = newest(valid_cuts, columns_max);
    let (system_cuts, cut_bands) = newest(system_cuts, BANDS_MAX);
    let cell = (room / (valid_cuts.len() + 1)).clamp(CELL_COLUMNS_MIN, CELL_COLUMNS_MAX);
    let images = images(rectangles);
    let grid = Grid { rectangles, images: &images, valid_cuts, system_cuts, cell, gutter, canvas };
    let mut out = grid.bands();
    out.push_str(&grid.valid_axis());
    for (count, what) in [(cut_columns, "older valid-time changes"), (cut_bands, "older beliefs")] {
        if count > 0 {
            let _ = writeln!(out, "  ({count} {what} are not drawn)");
        }
    }
    out.push_str(&grid.legend());
    out
}

/// The finite ends of all intervals of one axis, in order.
fn cuts(rectangles: &[Rectangle], of: impl Fn(&Rectangle) -> (i64, i64)) -> Vec<i64> {
    let ends = rectangles.iter().flat_map(|r| [of(r).0, of(r).1]);
    let mut cuts: Vec<i64> = ends.filter(|t| *t != BEGINNING && *t != FOREVER).collect();
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

fn newest(mut cuts: Vec<i64>, max: usize) -> (Vec<i64>, usize) {
    let dropped = cuts.len().saturating_sub(max);
    cuts.drain(..dropped);
    (cuts, dropped)
}

/// The different images, in the order in which they come to hold.
fn images(rectangles: &[Rectangle]) -> Vec<&str> {
    let mut order: Vec<&Rectangle> = rectangles.iter().collect();
    order.sort_by_key(|r| (r.valid.0, r.system.0));
    let mut images: Vec<&str> = Vec::new();
    for r in order {
        if !images.contains(&r.image.as_str()) {
            images.push(&r.image);
        }
    }
    images
}

struct Grid<'a> {
    rectangles: &'a [Rectangle],
    images: &'a [&'a str],
    valid_cuts: Vec<i64>,
    system_cuts: Vec<i64>,
    cell: usize,
    gutter: usize,
    canvas: &'a Canvas<'a>,
}

impl Grid<'_> {
    /// The image that holds just after the cut before stretch `i` on each axis.
    fn image_at(&self, valid: i64, system: i64) -> Option<usize> {
        let holds = |(start, end): (i64, i64), t: i64| start <= t && t < end;
        let found = self.rectangles.iter().find(|r| holds(r.valid, valid) && holds(r.system, system))?;
        self.images.iter().position(|i| *i == found.image)
    }

    /// A point inside the stretch before cut `i`.
    fn inside(cuts: &[i64], i: usize) -> i64 {
        match i.checked_sub(1) {
            Some(before) => cuts[before],
            None => cuts.first().map_or(0, |c| c.saturating_sub(1)),
        }
    }

    fn letter(&self, image: usize) -> String {
        let letter = LETTERS[image % LETTERS.len()] as char;
        match self.canvas.colour {
            true => format!("\x1b[1;{}m{letter}\x1b[0m", COLOURS[image % COLOURS.len()]),
            false => letter.to_string(),
        }
    }

    fn fill(&self, band: usize) -> String {
        let system = Self::inside(&self.system_cuts, band);
        let stretch = |i| match self.image_at(Self::inside(&self.valid_cuts, i), system) {
            Some(image) => self.letter(image).repeat(self.cell),
            None => "\u{b7}".repeat(self.cell),
        };
        (0..=self.valid_cuts.len()).map(stretch).collect()
    }

    fn row(&self, label: &str, axis: &str, text: &str) -> String {
        let pad = " ".repeat(self.gutter.saturating_sub(display_width(label) + 1));
        format!("{pad}{label} {axis}{text}\n")
    }

    /// The bands of system time, the newest on top, each above the instant it begins at.
    fn bands(&self) -> String {
        let mut out = self.row("system", "\u{25b2}", "");
        for band in (0..=self.system_cuts.len()).rev() {
            let fill = self.fill(band);
            if band > 0 || fill.contains(|c: char| c != '\u{b7}') {
                out.push_str(&self.row("", "\u{2502}", &fill));
            }
            if band > 0 {
                let label = (self.canvas.system_label)(self.system_cuts[band - 1]);
                out.push_str(&self.row(&label, "\u{253c}", &"\u{2508}".repeat(self.columns())));
            }
        }
        out
    }

    fn columns(&self) -> usize {
        self.cell * (self.valid_cuts.len() + 1)
    }

    /// The axis with a tick at each cut, and under it the labels, each on a line of its own.
    fn valid_axis(&self) -> String {
        let mut axis = vec!['\u{2500}'; self.columns()];
        for i in 0..self.valid_cuts.len() {
            axis[(i + 1) * self.cell] = '\u{252c}';
        }
        let axis: String = axis.into_iter().collect();
        let mut out = self.row("", "\u{2514}", &format!("{axis}\u{25b6} valid"));
        for last in (0..self.valid_cuts.len()).rev() {
            let mut line = vec![' '; (last + 1) * self.cell];
            for i in 0..last {
                line[(i + 1) * self.cell] = '\u{2502}';
            }
            let line: String = line.into_iter().collect();
            let label = (self.canvas.valid_label)(self.valid_cuts[last]);
            let before = self.gutter + 1 + display_width(&line);
            let after = format!("{line}\u{2514} {label}");
            let text = if before + 2 + display_width(&label) <= self.canvas.width
                || display_width(&label) + 1 > line.len()
            {
                after
            } else {
                self.label_before(&line, &label)
            };
            out.push_str(&self.row("", " ", &text));
        }
        out
    }

    /// A label that would not fit behind its tick stands before it, over the ticks it covers.
    fn label_before(&self, line: &str, label: &str) -> String {
        let keep = line.chars().count().saturating_sub(display_width(label) + 1);
        let kept: String = line.chars().take(keep).collect();
        format!("{kept}{label} \u{2518}")
    }

    fn legend(&self) -> String {
        let mut out = String::new();
        for (i, image) in self.images.iter().enumerate() {
            let room = self.canvas.width.saturating_sub(6);
            let _ = writeln!(out, "  {}  {}", self.letter(i), clip(image, room));
            for r in self.rectangles.iter().filter(|r| r.image == **image) {
                let valid = interval(r.valid, self.canvas.valid_label);
                let system = interval(r.system, self.canvas.system_label);
                let line = format!("     valid {valid}");
                let both = format!("{line}  known {system}");
                match display_width(&both) <= self.canvas.width {
                    true => out.push_str(&format!("{both}\n")),
                    false => out.push_str(&format!("{line}\n     known {system}\n")),
                }
            }
        }
        out
    }
}

/// `[start, end)` in the labels of an axis.
fn interval((start, end): (i64, i64), label: &dyn Fn(i64) -> String) -> String {
    let start = if start == BEGINNING { "..".to_owned() } else { label(start) };
    let end = if end == FOREVER { "..".to_owned() } else { label(end) };
    format!("[{start}, {end})")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The worked example of the semantics, minutes after ten.
    fn example() -> Vec<Rectangle> {
        let r = |image: &str, valid, system| Rectangle { valid, system, image: image.into() };
        vec![
            r("v1", (1, FOREVER), (5, 140)),
            r("v1", (1, 135), (140, 145)),
            r("v1", (1, 125), (145, FOREVER)),
            r("v3", (125, 135), (145, FOREVER)),
            r("v2", (135, FOREVER), (140, 150)),
            r("v2", (135, 150), (150, FOREVER)),
        ]
    }

    fn drawn(rectangles: &[Rectangle], width: usize) -> String {
        let label = |t: i64| t.to_string();
        draw(rectangles, &Canvas { width, colour: false, valid_label: &label, system_label: &label })
    }

    #[test]
    fn the_worked_example_is_drawn_with_axes_and_legend() {
        let expected = " system ▲
        │··············AAAAAAAAAAAAAABBBBBBBBBBBBBBCCCCCCCCCCCCCC··············
    150 ┼┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈
        │··············AAAAAAAAAAAAAABBBBBBBBBBBBBBCCCCCCCCCCCCCCCCCCCCCCCCCCCC
    145 ┼┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈
        │··············AAAAAAAAAAAAAAAAAAAAAAAAAAAACCCCCCCCCCCCCCCCCCCCCCCCCCCC
    140 ┼┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈
        │··············AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
      5 ┼┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈
        └──────────────┬─────────────┬─────────────┬─────────────┬─────────────▶ valid
                       │             │             │             └ 150
                       │             │             └ 135
                       │             └ 125
                       └ 1
  A  v1
     valid [1, ..)  known [5, 140)
     valid [1, 135)  known [140, 145)
     valid [1, 125)  known [145, ..)
  B  v3
     valid [125, 135)  known [145, ..)
  C  v2
     valid [135, ..)  known [140, 150)
     valid [135, 150)  known [150, ..)
";
        assert_eq!(drawn(&example(), 86), expected, "{}", drawn(&example(), 86));
    }

    #[test]
    fn real_instants_fit_eighty_columns() {
        let label = |t: i64| asofdb::time::format_instant(1_796_029_923_000_000 + t * 60_000_000);
        let canvas = Canvas { width: 80, colour: false, valid_label: &label, system_label: &label };
        let text = draw(&example(), &canvas);
        assert!(text.lines().all(|l| display_width(l) <= 80), "{text}");
        assert!(text.contains("valid [2026-11-30T09:13:03Z, 2026-11-30T11:17:03Z)"), "{text}");
    }

    #[test]
    fn many_changes_draw_the_newest_and_say_so() {
        let many: Vec<Rectangle> = (0..300)
            .map(|i| Rectangle { valid: (i, FOREVER), system: (i, i + 1), image: format!("v{}", i % 60) })
            .collect();
        let text = drawn(&many, 80);
        assert!(
            text.contains("older valid-time changes are not drawn)") && text.contains("older beliefs"),
            "{text}"
        );
        let drawing: Vec<&str> = text.lines().take_while(|l| !l.starts_with("  (")).collect();
        assert!(drawing.iter().all(|l| display_width(l) <= 86), "{text}");
    }

    #[test]
    fn one_eternal_fact_and_nothing_at_all() {
        let always =
            Rectangle { valid: (BEGINNING, FOREVER), system: (BEGINNING, FOREVER), image: "x".into() };
        let text = drawn(&[always], 80);
        assert!(text.contains("│AAAA") && text.contains("valid [.., ..)"), "{text}");
        assert_eq!(drawn(&[], 80), "");
    }

    #[test]
    fn long_rows_are_cut_in_the_legend() {
        let r = Rectangle { valid: (1, 2), system: (1, FOREVER), image: "x".repeat(500) };
        assert!(drawn(&[r], 60).lines().all(|l| display_width(l) <= 60));
    }
}
