//! Differential dataflow: one worker in this thread. Rows hold only what the view needs.

#[path = "../../side.rs"]
mod side;

use std::cell::RefCell;
use std::rc::Rc;

use differential_dataflow::consolidation::consolidate;
use differential_dataflow::input::InputSession;
use differential_dataflow::operators::CountTotal;
use differential_dataflow::VecCollection;
use side::{grains, Row, TOP};
use timely::dataflow::ProbeHandle;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Time = u64;
/// A key, a value in grains and an integer.
type Fact = (i64, i64, i64);
/// A row's number and its region.
type Dim = (i64, i64);
type Table<'scope, D> = VecCollection<'scope, Time, D, i64>;
type Found = (i64, [i64; 3]);

/// Buckets among which the greatest are looked for, before they are looked for among those that are left.
const BUCKETS: [i64; 2] = [1024, 32];

fn main() {
    let (view, folder) = side::arguments();
    timely::execute_directly(move |worker| {
        let mut facts: InputSession<Time, Fact, i64> = InputSession::new();
        let mut dims: InputSession<Time, Dim, i64> = InputSession::new();
        let probe = ProbeHandle::new();
        let changes: Rc<RefCell<Vec<(Found, i64)>>> = Rc::default();
        let emitted = changes.clone();
        worker.dataflow(|scope| {
            let (facts, dims) = (facts.to_collection(scope), dims.to_collection(scope));
            let found = match view.as_str() {
                "group-by" => group_by(facts),
                "join" | "dimension" => join(facts, dims),
                "top-10" => top(facts),
                "extremes" => extremes(facts),
                other => panic!("unknown view {other}"),
            };
            found
                .inspect_batch(move |_, rows| {
                    emitted.borrow_mut().extend(rows.iter().map(|(row, _, diff)| (*row, *diff)))
                })
                .probe_with(&probe);
        });
        side::serve(&view, &folder, |input, names| {
            let rows = &input.facts;
            for at in 0..rows.keys.len() {
                let fact = (rows.keys[at], grains(rows.values[at]), rows.integers[at]);
                facts.update(fact, rows.weights[at]);
            }
            let rows = &input.dims;
            for at in 0..rows.keys.len() {
                dims.update((rows.keys[at], names.number(&rows.regions[at])), rows.weights[at]);
            }
            let now = facts.time() + 1;
            facts.advance_to(now);
            dims.advance_to(now);
            facts.flush();
            dims.flush();
            worker.step_while(|| probe.less_than(&now));
            let mut delta = std::mem::take(&mut *changes.borrow_mut());
            consolidate(&mut delta);
            delta.into_iter().map(|((key, values), weight)| (key, values, weight)).collect::<Vec<Row>>()
        });
    });
}

/// Number and sum of each key: what is added up is the difference itself.
fn group_by<'scope>(facts: Table<'scope, Fact>) -> Table<'scope, Found> {
    facts
        .explode(|(key, value, _)| Some((key, (1, value))))
        .count_total_core()
        .map(|(key, (count, sum))| (key, [count, sum, 0]))
}

/// Number and sum of each region.
fn join<'scope>(facts: Table<'scope, Fact>, dims: Table<'scope, Dim>) -> Table<'scope, Found> {
    let facts = facts.map(|(key, value, _)| (key, value)).arrange_by_key();
    let dims = dims.arrange_by_key();
    facts
        .join_core(dims, |_, value, region| Some((*region, *value)))
        .explode(|(region, value)| Some((region, (1, value))))
        .count_total_core()
        .map(|(region, (count, sum))| (region, [count, sum, 0]))
}

/// The keys with the greatest sums, found in buckets first.
fn top<'scope>(facts: Table<'scope, Fact>) -> Table<'scope, Found> {
    let mut sums: Table<(i64, i64)> = facts
        .explode(|(key, _, integer)| Some((key, (1, integer))))
        .count_total_core()
        .map(|(key, (_, sum)): (i64, (i64, i64))| (-sum, key));
    for buckets in BUCKETS {
        sums = first(sums, buckets);
    }
    first(sums, 1).map(|(sum, key)| (key, [-sum, 0, 0]))
}

/// The first rows of each bucket; a bucket's rows come in their order.
fn first<'scope>(rows: Table<'scope, (i64, i64)>, buckets: i64) -> Table<'scope, (i64, i64)> {
    rows.map(move |(sum, key)| (key % buckets, (sum, key)))
        .reduce(|_, rows, found| found.extend(rows.iter().take(TOP).map(|(row, weight)| (**row, *weight))))
        .map(|(_, row)| row)
}

/// Least and greatest value and the number of integers of each key; a key's rows come in the order of the integers.
fn extremes<'scope>(facts: Table<'scope, Fact>) -> Table<'scope, Found> {
    facts.map(|(key, value, integer)| (key, (integer, value))).reduce(|_, rows, found| {
        let (mut low, mut high, mut kinds, mut last) = (i64::MAX, i64::MIN, 0, None);
        for ((integer, value), _) in rows {
            low = low.min(*value);
            high = high.max(*value);
            kinds += i64::from(last != Some(*integer));
            last = Some(*integer);
        }
        found.push(([low, high, kinds], 1));
    })
}
