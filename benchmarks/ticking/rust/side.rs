//! What the programs share: columns in files, the views' rows, and the talk with the Python that starts them.
//!
//! The program is started with the name of a view and a folder. The folder holds tables as one file for each column,
//! of little-endian numbers or of lines of text. The first table is `base`; the answer is how long it took to load.
//! From then on each line asks for something: `tick` applies the table `delta` and is answered by seconds; `view` is
//! answered by `done`, when every delta that the view has emitted lies in the folder.

use std::collections::HashMap;
use std::fs;
use std::io::{self, BufRead, Write};
use std::path::Path;
use std::time::Instant;

/// Doubles are multiples of 1 / GRAIN, so their sums are those of integers.
pub const GRAIN: f64 = 1024.0;
/// Rows of the view that is called top-10.
pub const TOP: usize = 10;

/// Changes of the facts: the key that the view asks for, the value in grains, a small integer and a weight.
pub struct Facts {
    pub keys: Vec<i64>,
    pub values: Vec<f64>,
    pub integers: Vec<i64>,
    pub weights: Vec<i64>,
}

/// Changes of the dimension; regions are texts.
pub struct Dims {
    pub keys: Vec<i64>,
    pub regions: Vec<String>,
    pub weights: Vec<i64>,
}

/// What happened to the tables, as columns in memory.
pub struct Input {
    pub facts: Facts,
    pub dims: Dims,
}

/// A change of the view: its key, up to three integers, and a weight. `columns` says what they are.
pub type Row = (i64, [i64; 3], i64);

/// Numbers in place of texts, given in the order in which they come.
#[derive(Default)]
pub struct Names {
    numbers: HashMap<String, i64>,
    texts: Vec<String>,
}

impl Names {
    pub fn number(&mut self, text: &str) -> i64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.texts.len() as i64;
        self.numbers.insert(text.to_string(), number);
        self.texts.push(text.to_string());
        number
    }
}

/// A double as an integer.
pub fn grains(value: f64) -> i64 {
    (value * GRAIN) as i64
}

enum Column {
    Integers(Vec<i64>),
    Doubles(Vec<f64>),
    Texts(Vec<String>),
}

/// The arguments of the program: a view's name and a folder.
pub fn arguments() -> (String, String) {
    let mut given = std::env::args().skip(1);
    (given.next().expect("a view"), given.next().expect("a folder"))
}

/// Answers requests until standard input ends. What is timed is `apply`, and then the making of the view's columns.
pub fn serve(view: &str, folder: &str, mut apply: impl FnMut(&Input, &mut Names) -> Vec<Row>) {
    let folder = Path::new(folder);
    let mut names = Names::default();
    let mut emitted = Vec::new();
    let mut timed = |table: &str, emitted: &mut Vec<(Vec<Column>, Vec<i64>)>| {
        let input = read(folder, table, view);
        let started = Instant::now();
        let rows = apply(&input, &mut names);
        let delta = columns(view, &rows, &names);
        let seconds = started.elapsed().as_secs_f64();
        emitted.push((delta, rows.iter().map(|row| row.2).collect()));
        seconds.to_string()
    };
    answer(&timed("base", &mut emitted));
    for line in io::stdin().lock().lines() {
        match line.expect("a line").as_str() {
            "tick" => answer(&timed("delta", &mut emitted)),
            "view" => {
                write(folder, &emitted);
                answer("done");
            }
            other => panic!("unknown request {other}"),
        }
    }
}

fn answer(text: &str) {
    let mut out = io::stdout();
    writeln!(out, "{text}").and_then(|()| out.flush()).expect("someone who reads");
}

/// The columns that the view's SQL names, but for the weight.
fn columns(view: &str, rows: &[Row], names: &Names) -> Vec<Column> {
    let keys = || Column::Integers(rows.iter().map(|row| row.0).collect());
    let integers = |at: usize| Column::Integers(rows.iter().map(|row| row.1[at]).collect());
    let doubles = |at: usize| Column::Doubles(rows.iter().map(|row| row.1[at] as f64 / GRAIN).collect());
    match view {
        "group-by" => {
            let means = rows.iter().map(|row| row.1[1] as f64 / GRAIN / row.1[0] as f64);
            vec![keys(), integers(0), doubles(1), Column::Doubles(means.collect())]
        }
        "join" | "dimension" => {
            let regions = rows.iter().map(|row| names.texts[row.0 as usize].clone());
            vec![Column::Texts(regions.collect()), doubles(1), integers(0)]
        }
        "top-10" => vec![keys(), integers(0)],
        "extremes" => vec![keys(), doubles(0), doubles(1), integers(2)],
        other => panic!("unknown view {other}"),
    }
}

fn read(folder: &Path, table: &str, view: &str) -> Input {
    let bytes = |name: &str| fs::read(folder.join(format!("{table}.{name}"))).unwrap_or_default();
    let integers = |name: &str| words(&bytes(name)).map(i64::from_le_bytes).collect::<Vec<_>>();
    let key = if view == "join" || view == "dimension" { "facts.d" } else { "facts.k" };
    let regions = String::from_utf8(bytes("dims.region")).expect("texts");
    Input {
        facts: Facts {
            keys: integers(key),
            values: words(&bytes("facts.v")).map(f64::from_le_bytes).collect(),
            integers: integers("facts.q"),
            weights: integers("facts.weight"),
        },
        dims: Dims {
            keys: integers("dims.d"),
            regions: regions.lines().map(str::to_string).collect(),
            weights: integers("dims.weight"),
        },
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = [u8; 8]> + '_ {
    bytes.chunks_exact(8).map(|word| word.try_into().expect("8 bytes"))
}

/// All deltas so far, one after the other: a file for each column by its number, and one for the weights.
fn write(folder: &Path, emitted: &[(Vec<Column>, Vec<i64>)]) {
    for at in 0..emitted[0].0.len() {
        let mut bytes = Vec::new();
        for (delta, _) in emitted {
            match &delta[at] {
                Column::Integers(numbers) => bytes.extend(numbers.iter().flat_map(|one| one.to_le_bytes())),
                Column::Doubles(numbers) => bytes.extend(numbers.iter().flat_map(|one| one.to_le_bytes())),
                Column::Texts(texts) => texts.iter().for_each(|one| bytes.extend(format!("{one}\n").into_bytes())),
            }
        }
        fs::write(folder.join(format!("view.{at}")), bytes).expect("a file");
    }
    let weights = emitted.iter().flat_map(|(_, weights)| weights).flat_map(|one| one.to_le_bytes());
    fs::write(folder.join("view.weight"), weights.collect::<Vec<_>>()).expect("a file");
}
