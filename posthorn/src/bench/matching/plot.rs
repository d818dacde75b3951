//! Cycles against depth, drawn, a column for each of the two lists: on top the operation that searches it, of the engine, the
//! firmware's list and the host; below what else the engine does with it.

use std::path::Path;

use abi::mgmt::CLOCK_NS;
use anyhow::{Context, Result};
use plotters::coord::Shift;
use plotters::prelude::*;
use serde_json::Value;

use super::super::{Point, Report};
use host_matching::workload::{Kind, Structure};

/// Width and height of the picture, in pixels.
const SIZE: (u32, u32) = (1180, 1440);
const FONT: &str = "sans-serif";

/// What is drawn of each list, from the top: the operation, and what happens.
const PANELS: [[(&str, &str); 3]; 2] = [
    [
        ("arrive", "A message comes, D receives are posted"),
        ("post", "A receive is posted, D receives are posted"),
        ("cancel", "A receive is cancelled, D receives are posted"),
    ],
    [
        ("post", "A receive is posted, D messages wait"),
        ("arrive", "A message comes and waits, D messages wait"),
        ("probe", "A probe, D messages wait"),
    ],
];

/// One line: points of depth and cycles.
struct Line {
    label: String,
    color: RGBColor,
    width: u32,
    points: Vec<(f64, f64)>,
}

/// Colours that are told apart by most eyes (Okabe and Ito).
const COLORS: [RGBColor; 5] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
];
const FIRMWARE: RGBColor = RGBColor(213, 94, 0);
const HOST: RGBColor = RGBColor(90, 90, 90);

/// Draws a report of this suite into an SVG file.
///
/// # Errors
/// If the file can't be written.
pub fn plot(report: &Report, file: &Path) -> Result<()> {
    let root = SVGBackend::new(file, SIZE).into_drawing_area();
    draw(&root, report)
        .and_then(|()| Ok(root.present()?))
        .map_err(|error| anyhow::anyhow!("{error}"))
        .with_context(|| format!("drawing {}", file.display()))
}

type Drawing<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = std::result::Result<(), Box<dyn std::error::Error>>;

fn draw(root: &Drawing, report: &Report) -> std::result::Result<(), anyhow::Error> {
    let text = |error: Box<dyn std::error::Error>| anyhow::anyhow!("{error}");
    root.fill(&WHITE)?;
    let panels = root.split_evenly((PANELS[0].len(), PANELS.len()));
    for (n, panel) in panels.iter().enumerate() {
        let (row, column) = (n / PANELS.len(), n % PANELS.len());
        let (operation, caption) = PANELS[column][row];
        let structure = Structure::ALL[column];
        let mut lines = of_the_engine(report, structure, operation);
        let mut labels = SeriesLabelPosition::LowerLeft;
        if row == 0 {
            lines.extend(of_others(report, structure));
            labels = SeriesLabelPosition::UpperLeft;
        }
        chart(panel, caption, &lines, labels).map_err(text)?;
    }
    Ok(())
}

/// What an operation takes the engine at most, by kind.
fn of_the_engine(report: &Report, structure: Structure, operation: &str) -> Vec<Line> {
    let longest = |point: &Point| point.beside.get("max").copied().unwrap_or(point.value);
    let line = |(kind, color): (Kind, RGBColor)| Line {
        label: format!("engine, {}", kind.name().replace('_', " ")),
        color,
        width: 2,
        points: series(report, structure, kind, operation, longest),
    };
    Kind::ALL.into_iter().zip(COLORS).map(line).collect()
}

/// What a search takes the others on the average.
fn of_others(report: &Report, structure: Structure) -> Vec<Line> {
    let mut lines = Vec::new();
    let others = [
        ("list in firmware", FIRMWARE, "firmware_list", 1.0),
        ("host", HOST, "host_best", 1.0 / f64::from(CLOCK_NS)),
    ];
    for (label, color, name, cycles) in others {
        for kind in [Kind::Exact, Kind::Mask] {
            lines.push(Line {
                label: format!("{label}, {}", kind.name()),
                color,
                width: if kind == Kind::Exact { 1 } else { 3 },
                points: series(report, structure, kind, name, |point| cycles * point.value),
            });
        }
    }
    lines
}

/// Points of one name, by depth. Those whose depth is no number, or that have further parameters, belong elsewhere.
fn series(
    report: &Report,
    structure: Structure,
    kind: Kind,
    name: &str,
    value: impl Fn(&Point) -> f64,
) -> Vec<(f64, f64)> {
    let wanted = |point: &&Point| {
        let is =
            |param, value: &str| point.params.get(param).and_then(Value::as_str) == Some(value);
        point.name == name
            && is("structure", structure.name())
            && is("kind", kind.name())
            && point.params.len() == 3
    };
    let point = |point: &Point| Some((point.params["depth"].as_f64()?, value(point)));
    report
        .points
        .iter()
        .filter(wanted)
        .filter_map(point)
        .collect()
}

fn chart(panel: &Drawing, caption: &str, lines: &[Line], labels: SeriesLabelPosition) -> Drawn {
    let values = || lines.iter().flat_map(|line| &line.points);
    let deepest = values().map(|(depth, _)| *depth).fold(2.0, f64::max);
    let highest = values().map(|(_, cycles)| *cycles).fold(10.0, f64::max);
    let mut chart = ChartBuilder::on(panel)
        .caption(caption, (FONT, 18))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(
            (1.0..deepest).log_scale().base(2.0),
            (0.5..2.0 * highest).log_scale(),
        )?;
    chart
        .configure_mesh()
        .x_desc("depth D")
        .y_desc(format!("cycles of {CLOCK_NS} ns"))
        .x_label_formatter(&|depth| format!("{depth:.0}"))
        .y_label_formatter(&|cycles| format!("{cycles}"))
        .label_style((FONT, 13))
        .axis_desc_style((FONT, 14))
        .light_line_style(WHITE)
        .draw()?;
    for line in lines.iter().filter(|line| !line.points.is_empty()) {
        let style = line.color.stroke_width(line.width);
        chart
            .draw_series(LineSeries::new(line.points.iter().copied(), style).point_size(3))?
            .label(line.label.clone())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
    }
    chart
        .configure_series_labels()
        .position(labels)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .label_font((FONT, 12))
        .draw()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_line_is_in_the_picture() {
        let mut points = Vec::new();
        for structure in Structure::ALL {
            for kind in Kind::ALL {
                for name in [
                    "arrive",
                    "post",
                    "cancel",
                    "probe",
                    "firmware_list",
                    "host_best",
                ] {
                    for depth in [1, 8, 64] {
                        let params = super::super::params(structure, kind, json!(depth));
                        points.push(Point::new(name, params, f64::from(depth), "cycles"));
                    }
                }
            }
        }
        let report = Report::new("match", "tiny", 1, points);
        let file = std::env::temp_dir().join(format!("posthorn-plot-{}.svg", std::process::id()));
        plot(&report, &file).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        for kind in Kind::ALL {
            let label = format!("engine, {}", kind.name().replace('_', " "));
            let labels = text.lines().filter(|line| line.trim() == label);
            assert_eq!(labels.count(), 6, "{label}");
        }
        assert_eq!(text.matches("list in firmware").count(), 4);
        assert!(text.contains("cycles of"));
    }
}
