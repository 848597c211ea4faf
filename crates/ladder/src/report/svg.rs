//! Charts as SVG. Colours are the page's: marks have classes and no colours of their
//! own, so that one drawing serves light and dark.

use super::style;
use crate::chart::{Axis, Bar, Chart, Line, Mark};
use crate::experiments::number;
use crate::rung::Text;
use core::fmt::Write;

/// Text in which nothing is a mark of XML.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            // XML has no way to write the other control characters.
            '\u{0}'..='\u{8}'
            | '\u{b}'
            | '\u{c}'
            | '\u{e}'..='\u{1f}'
            | '\u{fffe}'
            | '\u{ffff}' => {
                out.push('\u{fffd}');
            }
            _ => out.push(c),
        }
    }
    out
}

/// How wide a drawing is, in units of its own, which a page shows as pixels or less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// For a page.
    Wide,
    /// For a telephone.
    Narrow,
}

impl Width {
    fn units(self) -> f64 {
        match self {
            Width::Wide => 720.0,
            Width::Narrow => 340.0,
        }
    }

    fn class(self) -> &'static str {
        match self {
            Width::Wide => "wide",
            Width::Narrow => "narrow",
        }
    }
}

/// Colours that lines and groups are told apart by.
const COLOURS: usize = 8;

/// Ways to dash a line, which `chart.css` has.
const DASHES: usize = 6;

/// A letter is about so wide, in units, at the size of labels.
const LETTER: f64 = 6.6;

/// A drawing that grows.
struct Drawing {
    body: String,
    width: f64,
    height: f64,
}

impl Drawing {
    fn new(width: Width) -> Drawing {
        Drawing { body: String::new(), width: width.units(), height: 0.0 }
    }

    fn add(&mut self, text: core::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.body.write_fmt(text);
    }

    fn text(&mut self, x: f64, y: f64, class: &str, text: &str) {
        self.add(format_args!(
            r#"<text x="{x:.1}" y="{y:.1}" class="{class}">{}</text>"#,
            escaped(text)
        ));
    }

    fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.add(format_args!(
            r#"<line class="{class}" x1="{:.1}" y1="{:.1}" x2="{:.1}" y2="{:.1}"/>"#,
            from.0, from.1, to.0, to.1
        ));
    }

    fn finish(self, id: &str, width: Width, title: &str, description: &str) -> String {
        format!(
            concat!(
                r#"<svg xmlns="http://www.w3.org/2000/svg" class="chart {}" viewBox="0 0 {:.0} {:.0}" "#,
                r#"role="img" aria-labelledby="{}-t {}-d"><title id="{}-t">{}</title><desc id="{}-d">{}</desc>{}</svg>"#
            ),
            width.class(),
            self.width,
            self.height,
            id,
            id,
            id,
            escaped(title),
            id,
            escaped(description),
            self.body
        )
    }
}

/// A chart; `id` is like no other on the page.
pub(super) fn draw(chart: &Chart, id: &str, width: Width) -> String {
    let id = format!("{id}-{}", width.class());
    let mut drawing = Drawing::new(width);
    match chart {
        Chart::Bars { unit, bars, reference, .. } => {
            draw_bars(&mut drawing, unit, bars, reference.as_ref(), width);
        }
        Chart::Lines { x, y, lines, marks, .. } => {
            draw_lines(&mut drawing, (x, y), lines, marks, width);
        }
        Chart::Heat { unit, across, columns, down, rows, cells, .. } => {
            let names = Names { unit, across, columns, down, rows };
            draw_heat(&mut drawing, &names, cells);
        }
    }
    drawing.finish(&id, width, chart.title(), &description(chart))
}

/// A chart in words, as far as words do it.
fn description(chart: &Chart) -> String {
    const MOST: usize = 60;
    match chart {
        Chart::Bars { unit, bars, .. } => {
            let told =
                bars.iter().take(MOST).map(|bar| format!("{} {}", bar.name, number(bar.value)));
            format!("Bars, {unit}: {}", told.collect::<Vec<_>>().join(", "))
        }
        Chart::Lines { x, y, lines, .. } => {
            let best = |line: &Line| {
                let best = line.points.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
                best.map(|(at, value)| {
                    format!("{}: highest {} at {}", line.name, number(value), number(at))
                })
            };
            let told: Vec<_> = lines.iter().take(MOST).filter_map(best).collect();
            format!("Lines, {} by {}. {}", y.label, x.label, told.join("; "))
        }
        Chart::Heat { unit, across, down, rows, columns, cells, .. } => {
            let all = cells.iter().zip(rows).flat_map(|(row, name)| {
                let cells = row.iter().zip(columns);
                cells.filter_map(move |(cell, column)| Some((name, column, (*cell)?)))
            });
            let best = all.max_by(|a, b| a.2.total_cmp(&b.2));
            let told = best.map_or_else(String::new, |(row, column, value)| {
                format!(" Highest: {} at {down} {row}, {across} {column}.", number(value))
            });
            format!("A cell for each {down} and {across}, {unit}.{told}")
        }
    }
}

/// The groups of bars: the texts in their order, so that each has one colour in all
/// charts, and others in the order in which they come.
fn groups(bars: &[Bar]) -> Vec<&str> {
    let mut groups = Vec::new();
    for group in bars.iter().filter_map(|bar| bar.group.as_deref()) {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    let place = |name: &str| Text::ALL.iter().position(|text| text.name() == name);
    groups.sort_by_key(|name| place(name).unwrap_or(Text::ALL.len()));
    groups
}

fn draw_bars(
    drawing: &mut Drawing,
    unit: &str,
    bars: &[Bar],
    reference: Option<&Mark>,
    width: Width,
) {
    let longest = bars.iter().map(|bar| bar.name.chars().count()).max().unwrap_or(0);
    let above = width == Width::Narrow && longest > 12;
    let gutter = if above { 2.0 } else { (longest as f64 * LETTER + 10.0).min(220.0) };
    let room = drawing.width - gutter - 64.0;
    let reference = reference.filter(|mark| mark.at.is_finite() && mark.at > 0.0);
    let most = bars.iter().map(|bar| bar.value).chain(reference.map(|mark| mark.at));
    let most = most.filter(|x| x.is_finite()).fold(0.0, f64::max);
    let scale = if most > 0.0 { room / most } else { 0.0 };
    let groups = groups(bars);
    let mut y = 6.0;
    if let Some(mark) = reference {
        y += 18.0;
        drawing.text(drawing.width - 4.0, 14.0, "label end", &mark.text);
    }
    let limit = reference.map(|mark| gutter + mark.at * scale);
    if let Some(x) = limit {
        let step = if above { 37.0 } else { 23.0 };
        drawing.line("reference", (x, y - 3.0), (x, y + step * bars.len() as f64 - 3.0));
    }
    for bar in bars {
        let colour = bar.group.as_deref().and_then(|g| groups.iter().position(|x| *x == g));
        let colour = colour.unwrap_or(0) % COLOURS;
        let long = if bar.value.is_finite() { (bar.value * scale).max(1.0) } else { 0.0 };
        let shown = number(bar.value);
        if above {
            drawing.text(gutter, y + 11.0, "label", &bar.name);
            y += 15.0;
        } else {
            drawing.text(gutter - 6.0, y + 13.0, "label end", &bar.name);
        }
        drawing.add(format_args!(
            r#"<rect class="mark c{colour}" x="{gutter:.1}" y="{y:.1}" width="{long:.1}" height="17" rx="2"><title>{}: {} {}</title></rect>"#,
            escaped(&bar.name),
            escaped(&shown),
            escaped(unit)
        ));
        let (x, class) = label(gutter, long, &shown, limit);
        drawing.text(x, y + 13.0, class, &shown);
        y += if above { 22.0 } else { 23.0 };
    }
    drawing.text(gutter, y + 10.0, "unit", unit);
    drawing.height = y + 18.0;
    legend(drawing, &groups, false);
}

/// Where a bar's number is written: behind the bar, or inside of it where it would run into the line of the limit.
fn label(gutter: f64, long: f64, shown: &str, limit: Option<f64>) -> (f64, &'static str) {
    let (end, wide) = (gutter + long, shown.chars().count() as f64 * LETTER);
    let meets = |from: f64| limit.is_some_and(|x| from - 4.0 <= x && x <= from + wide + 4.0);
    match (meets(end + 5.0), wide + 10.0 <= long && !meets(end - 5.0 - wide)) {
        (false, _) => (end + 5.0, "value"),
        (true, true) => (end - 5.0, "on-mark end"),
        (true, false) => (limit.unwrap_or(end) + 5.0, "value"),
    }
}

/// Names beside their colours, beneath what is drawn already.
fn legend(drawing: &mut Drawing, names: &[&str], lines: bool) {
    if names.len() < 2 {
        return;
    }
    let (mut x, mut y) = (4.0, drawing.height + 14.0);
    for (i, name) in names.iter().enumerate() {
        let sample = if lines { 30.0 } else { 12.0 };
        let long = 8.0 + sample + name.chars().count() as f64 * LETTER + 14.0;
        if x + long > drawing.width && x > 4.0 {
            (x, y) = (4.0, y + 20.0);
        }
        let colour = i % COLOURS;
        if lines {
            let dash = i % DASHES;
            let class = format!("line c{colour} d{dash}");
            drawing.line(&class, (x, y - 4.0), (x + sample, y - 4.0));
        } else {
            drawing.add(format_args!(
                r#"<rect class="swatch c{colour}" x="{x:.1}" y="{:.1}" width="12" height="12" rx="2"/>"#,
                y - 10.0
            ));
        }
        drawing.text(x + sample + 5.0, y, "label", name);
        x += long;
    }
    drawing.height = y + 10.0;
}

/// An axis: where its numbers come to lie, and which are written.
struct Scale {
    log: bool,
    least: f64,
    most: f64,
    /// The largest number.
    last: f64,
    from: f64,
    to: f64,
    ticks: Vec<f64>,
}

impl Scale {
    /// `from` and `to` are where the least and the most of the numbers come to lie.
    fn new(
        log: bool,
        numbers: impl Iterator<Item = f64>,
        (from, to): (f64, f64),
        ticks: usize,
    ) -> Scale {
        let usable = |x: &f64| x.is_finite() && (!log || *x > 0.0);
        let (least, most) = numbers
            .filter(usable)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
        let (least, most) = if least <= most { (least, most) } else { (1.0, 2.0) };
        if log {
            let (low, high) =
                (least.log2().floor(), most.log2().ceil().max(least.log2().floor() + 1.0));
            let step = ((high - low) / ticks as f64).ceil().max(1.0);
            let count = ((high - low) / step).floor() as u32;
            let ticks = (0..=count).map(|k| (low + step * f64::from(k)).exp2()).collect();
            return Scale {
                log,
                least: low.exp2(),
                most: high.exp2(),
                last: most,
                from,
                to,
                ticks,
            };
        }
        let least = least.min(0.0);
        let most = if most > least { most } else { least + 1.0 };
        let step = nice((most - least) / ticks as f64);
        let first = (least / step).floor();
        let count = (most / step - 1e-9).ceil().max(first + 1.0);
        let ticks = (0..=(count - first) as u32).map(|k| (first + f64::from(k)) * step).collect();
        Scale { log, least: first * step, most: count * step, last: most, from, to, ticks }
    }

    /// Without what is rounded up beyond the last number.
    fn tight(self) -> Scale {
        if self.log {
            return self;
        }
        let most = self.last;
        Scale { most, ticks: self.ticks.into_iter().filter(|tick| *tick <= most).collect(), ..self }
    }

    fn at(&self, x: f64) -> f64 {
        let map = |x: f64| if self.log { x.max(f64::MIN_POSITIVE).log2() } else { x };
        let part = (map(x) - map(self.least)) / (map(self.most) - map(self.least));
        self.from + part.clamp(0.0, 1.0) * (self.to - self.from)
    }

    fn shown(&self, x: f64) -> String {
        match self.log && x >= 1024.0 {
            true => binary(x),
            false => number(x),
        }
    }
}

/// The next of 1, 2 and 5 times a power of ten.
fn nice(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let times =
        [1.0, 2.0, 5.0, 10.0].into_iter().find(|times| times * power >= step * (1.0 - 1e-9));
    times.unwrap_or(10.0) * power
}

/// A power of two from 1024 on: `64Ki`.
fn binary(x: f64) -> String {
    let units = ["", "Ki", "Mi", "Gi", "Ti"];
    let (mut x, mut unit) = (x, 0);
    while x >= 1024.0 && unit + 1 < units.len() {
        (x, unit) = (x / 1024.0, unit + 1);
    }
    format!("{}{}", number(x), units[unit])
}

fn draw_lines(
    drawing: &mut Drawing,
    (x, y): (&Axis, &Axis),
    lines: &[Line],
    marks: &[Mark],
    width: Width,
) {
    let (left, right, top) = (54.0, drawing.width - 18.0, 26.0 + 15.0 * marks.len() as f64);
    let bottom = top + if width == Width::Wide { 300.0 } else { 220.0 };
    let numbers = |pick: fn(&(f64, f64)) -> f64| lines.iter().flat_map(|l| &l.points).map(pick);
    let ticks = if width == Width::Wide { 10 } else { 5 };
    let across = numbers(|p| p.0).chain(marks.iter().map(|mark| mark.at));
    let across = Scale::new(x.log, across, (left, right), ticks).tight();
    let up = Scale::new(y.log, numbers(|p| p.1), (bottom, top), 6);
    for &tick in &up.ticks {
        drawing.line("grid", (left, up.at(tick)), (right, up.at(tick)));
        drawing.text(left - 6.0, up.at(tick) + 4.0, "tick end", &up.shown(tick));
    }
    for &tick in &across.ticks {
        drawing.line("grid", (across.at(tick), bottom), (across.at(tick), bottom + 4.0));
        drawing.text(across.at(tick), bottom + 17.0, "tick middle", &across.shown(tick));
    }
    drawing.line("axis", (left, bottom), (right, bottom));
    drawing.text(f64::midpoint(left, right), bottom + 34.0, "unit middle", &x.label);
    drawing.text(4.0, 11.0, "unit", &y.label);
    for (i, mark) in marks.iter().enumerate() {
        let at = across.at(mark.at);
        let (side, from) =
            if at > f64::midpoint(left, right) { ("label end", -5.0) } else { ("label", 5.0) };
        drawing.line("reference", (at, top - 6.0), (at, bottom));
        drawing.text(at + from, 30.0 + 15.0 * i as f64, side, &mark.text);
    }
    for (i, line) in lines.iter().enumerate() {
        let class = i % COLOURS;
        // Lines are told apart without colours, too.
        let dash = i % DASHES;
        let usable = |(x, y): &&(f64, f64)| x.is_finite() && y.is_finite();
        let place = |(x, y): &(f64, f64)| format!("{:.1},{:.1}", across.at(*x), up.at(*y));
        let points: Vec<String> = line.points.iter().filter(usable).map(place).collect();
        drawing.add(format_args!(
            r#"<polyline class="line c{class} d{dash}" points="{}"/>"#,
            points.join(" ")
        ));
        // Points that run together are a line.
        let dense = line.points.len() > 64;
        let radius = if dense { 1.0 } else { 3.2 };
        for (px, py) in line.points.iter().filter(usable) {
            drawing.add(format_args!(
                r#"<circle class="mark c{class}" cx="{:.1}" cy="{:.1}" r="{radius}"><title>{}: {} at {}</title></circle>"#,
                across.at(*px),
                up.at(*py),
                escaped(&line.name),
                escaped(&number(*py)),
                escaped(&across.shown(*px))
            ));
        }
    }
    drawing.height = bottom + 42.0;
    let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
    legend(drawing, &names, true);
}

/// The words around a heat map.
struct Names<'a> {
    unit: &'a str,
    across: &'a str,
    columns: &'a [String],
    down: &'a str,
    rows: &'a [String],
}

fn draw_heat(drawing: &mut Drawing, names: &Names<'_>, cells: &[Vec<Option<f64>>]) {
    let longest = names.rows.iter().map(|row| row.chars().count()).max().unwrap_or(0);
    let gutter = (longest as f64 * LETTER + 12.0).clamp(44.0, 0.42 * drawing.width);
    let count = cells.iter().map(Vec::len).max().unwrap_or(0).max(names.columns.len()).max(1);
    let wide = (drawing.width - gutter - 2.0) / count as f64;
    let high = 26.0;
    let usable = |cell: &Option<f64>| cell.filter(|x| x.is_finite());
    let all = || cells.iter().flatten().filter_map(usable);
    let (least, most) =
        all().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
    let framed = all().filter(|value| *value == most).count() == 1 && most > least;
    let (down, across) = (names.down, names.across);
    drawing.text(0.0, 12.0, "unit", &format!("{down} \u{2193}   {across} \u{2192}"));
    let mut last = f64::NEG_INFINITY;
    for (i, column) in names.columns.iter().enumerate() {
        let x = gutter + wide * (i as f64 + 0.5);
        let long = column.chars().count() as f64 * LETTER;
        // Names that would run into each other are left out.
        if x - long / 2.0 > last + 4.0 {
            drawing.text(x, 30.0, "tick middle", column);
            last = x + long / 2.0;
        }
    }
    let mut y = 36.0;
    for (row, name) in cells.iter().zip(names.rows) {
        drawing.text(gutter - 6.0, y + 17.0, "label end", name);
        for (i, cell) in row.iter().enumerate() {
            let x = gutter + wide * i as f64;
            let Some(value) = usable(cell) else {
                drawing.add(format_args!(
                    r#"<rect class="nothing" x="{:.1}" y="{y:.1}" width="{:.1}" height="{:.1}"/>"#,
                    x + 0.5,
                    wide - 1.0,
                    high - 1.0
                ));
                continue;
            };
            let part = if most > least { (value - least) / (most - least) } else { 1.0 };
            let best = if value == most && framed { " best" } else { "" };
            let column = names.columns.get(i).map_or("", String::as_str);
            drawing.add(format_args!(
                r#"<rect class="mark cell{best}" fill-opacity="{:.3}" x="{:.1}" y="{y:.1}" width="{:.1}" height="{:.1}"><title>{} {}, {} {}: {} {}</title></rect>"#,
                0.06 + 0.94 * part,
                x + 0.5,
                wide - 1.0,
                high - 1.0,
                escaped(down),
                escaped(name),
                escaped(across),
                escaped(column),
                escaped(&number(value)),
                escaped(names.unit)
            ));
            let shown = number(value);
            if shown.chars().count() as f64 * LETTER <= wide {
                let class = if part > 0.5 { "inside dark" } else { "inside" };
                drawing.text(x + wide / 2.0, y + 17.0, class, &shown);
            }
        }
        y += high;
    }
    let framed = if framed { "; the highest has a frame" } else { "" };
    drawing.text(0.0, y + 14.0, "unit", &format!("{}{framed}", names.unit));
    drawing.height = y + 22.0;
}

/// A drawing as a file of its own, with its title.
pub(super) fn file(chart: &Chart, id: &str) -> String {
    let drawn = draw(chart, id, Width::Wide);
    standalone(&drawn)
}

/// A drawing with the style that it needs.
pub(crate) fn standalone(drawn: &str) -> String {
    let style = format!("<style>{}</style>", style::alone());
    match drawn.find("</desc>") {
        Some(at) => {
            let at = at + "</desc>".len();
            format!("{}{style}{}\n", &drawn[..at], &drawn[at..])
        }
        None => drawn.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_nice() {
        for (step, wanted) in [(0.7, 1.0), (1.0, 1.0), (1.2, 2.0), (30.0, 50.0), (0.06, 0.1)] {
            assert!((nice(step) / wanted - 1.0).abs() < 1e-9, "{step}: {}", nice(step));
        }
        assert_eq!((binary(1024.0), binary(65536.0)), ("1Ki".into(), "64Ki".into()));
        assert_eq!(binary(f64::from(1 << 20)), "1Mi");
    }

    #[test]
    fn scales_hold_all_their_numbers() {
        for log in [false, true] {
            for numbers in [vec![], vec![5.0], vec![0.001, 3.0, 4096.0], vec![0.0, f64::NAN, 7.0]] {
                let scale = Scale::new(log, numbers.iter().copied(), (10.0, 110.0), 5);
                assert!(scale.ticks.len() >= 2 && scale.ticks.len() < 16, "{:?}", scale.ticks);
                for x in numbers.iter().copied().filter(|x| x.is_finite()) {
                    let at = scale.at(x);
                    assert!((10.0..=110.0).contains(&at), "{x} at {at}");
                }
                assert!(scale.ticks.is_sorted());
            }
        }
    }

    #[test]
    fn numbers_keep_away_from_the_limit() {
        assert_eq!(label(100.0, 50.0, "4461", Some(400.0)), (155.0, "value"));
        assert_eq!(label(100.0, 295.0, "4461", Some(400.0)), (390.0, "on-mark end"));
        // A short bar, and one that goes beyond the limit.
        assert_eq!(label(100.0, 8.0, "4461", Some(120.0)), (125.0, "value"));
        assert_eq!(label(100.0, 310.0, "4461", Some(400.0)), (415.0, "value"));
        assert_eq!(label(100.0, 305.0, "4461", Some(404.0)), (410.0, "value"));
        assert_eq!(label(100.0, 305.0, "4461", None), (410.0, "value"));
    }

    #[test]
    fn a_text_has_the_same_colour_whichever_comes_first() {
        let bar = |group: &str| Bar { name: "x".into(), value: 1.0, group: Some(group.into()) };
        let bars = ["other", "W", "F", "P", "F"].map(bar);
        assert_eq!(groups(&bars), ["P", "F", "W", "other"]);
    }

    #[test]
    fn every_number_has_its_mark_and_every_word_is_escaped() {
        let nasty = "<b>&\"'\u{1}";
        let charts = [
            Chart::Bars {
                title: nasty.into(),
                unit: nasty.into(),
                bars: vec![
                    Bar { name: nasty.into(), value: 2.0, group: Some("a".into()) },
                    Bar { name: "none".into(), value: 0.0, group: Some(nasty.into()) },
                ],
                reference: Some(Mark { at: 3.0, text: nasty.into() }),
            },
            Chart::Lines {
                title: nasty.into(),
                x: Axis::log(nasty),
                y: Axis::linear(nasty),
                lines: vec![Line { name: nasty.into(), points: vec![(1.0, 2.0), (4.0, 1e300)] }],
                marks: vec![Mark { at: 2.0, text: nasty.into() }],
            },
            Chart::Heat {
                title: nasty.into(),
                unit: nasty.into(),
                across: nasty.into(),
                columns: vec![nasty.into(), "b".into()],
                down: nasty.into(),
                rows: vec![nasty.into(), "d".into()],
                cells: vec![vec![Some(1.0), None], vec![Some(2.0)]],
            },
        ];
        for chart in &charts {
            for width in [Width::Wide, Width::Narrow] {
                let svg = draw(chart, "x", width);
                assert_eq!(svg.matches("class=\"mark").count(), chart.marks(), "{svg}");
                assert!(!svg.contains("<b>") && !svg.contains('\u{1}'), "{svg}");
                assert!(svg.contains("&lt;b&gt;&amp;&quot;&#39;\u{fffd}"), "{svg}");
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
                assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
            }
        }
    }
}
