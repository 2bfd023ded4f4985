"use strict";
// What the functions of sheetgen's formulas call, and programs of such functions over axes, as Python evaluates them.

// Operations, as sheetgen/formula/operations.py has them; none is NaN ------------------------------------------

const isNumber = (x) => (typeof x === "number" ? x === x : typeof x === "boolean");
const isText = (x) => typeof x === "string" && x > "";
const isBlank = (x) => x !== x || x === "";
const ratioOr = (x, n, otherwise) => (n == 0 ? otherwise : x / n);
const powerOf = (base, exponent) => (base === 1 ? 1 : Math.pow(base, exponent)); // also where the exponent is none
const isSameMoney = (x, y) => x === y || Math.abs(x - y) <= 1e-12 * Math.abs(y);
const isAtMost = (x, y) => x < y || isSameMoney(x, y);

function remainderOf(x, n) {
  const rest = x % n;
  return rest !== 0 && rest < 0 !== n < 0 ? rest + n : rest;
}

function roundUp(x) {
  const nearest = Math.round(x);
  return Math.abs(x - nearest) <= 1e-12 * Math.abs(nearest) ? nearest : Math.ceil(x);
}

function roundNearest(x, decimals) {
  const scale = 10 ** decimals;
  return Math.floor(x * scale + 0.5) / scale;
}

const normalDensity = (z) => Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI);

// The share of a normal distribution below z: a power series near the middle, a continued fraction in the tails.
function normalShare(z) {
  const far = Math.abs(z);
  if (far < 3) {
    let term = z, sum = z;
    for (let n = 1; n < 200; n++) sum += term *= (z * z) / (2 * n + 1);
    return 0.5 + sum * normalDensity(z);
  }
  let fraction = 0;
  for (let n = 200; n > 0; n--) fraction = n / (far + fraction);
  const tail = normalDensity(z) / (far + fraction);
  return z > 0 ? 1 - tail : tail;
}

// The z below which that share of a normal distribution lies, by Wichura's AS 241.
function normalQuantile(share) {
  const rational = (x, over, under) => over.reduce((sum, a) => sum * x + a) / under.reduce((sum, a) => sum * x + a);
  if (!(share > 0 && share < 1)) return NaN;
  const middle = share - 0.5;
  if (Math.abs(middle) <= 0.425) {
    return middle * rational(0.180625 - middle * middle,
      [2.50908092873012267e3, 3.34305755835881281e4, 6.72657709270087009e4, 4.59219539315498715e4,
        1.37316937655094611e4, 1.97159095030655144e3, 1.33141667891784377e2, 3.38713287279636661],
      [5.22649527885285456e3, 2.87290857357219427e4, 3.93078958000927107e4, 2.12137943015865959e4,
        5.39419602142475111e3, 6.87187007492057908e2, 4.23133307016009113e1, 1]);
  }
  const far = Math.sqrt(-Math.log(Math.min(share, 1 - share)));
  const z = far <= 5
    ? rational(far - 1.6,
      [7.74545014278341407e-4, 2.27238449892691846e-2, 2.41780725177450612e-1, 1.27045825245236838,
        3.64784832476320461, 5.76949722146069141, 4.63033784615654530, 1.42343711074968358],
      [1.05075007164441684e-9, 5.47593808499534495e-4, 1.51986665636164572e-2, 1.48103976427480075e-1,
        6.89767334985100004e-1, 1.67638483018380385, 2.05319162663775882, 1])
    : rational(far - 5,
      [2.01033439929228813e-7, 2.71155556874348758e-5, 1.24266094738807844e-3, 2.65321895265761230e-2,
        2.96560571828504891e-1, 1.78482653991729133, 5.46378491116411437, 6.65790464350110378],
      [2.04426310338993979e-15, 1.42151175831644589e-7, 1.84631831751005468e-5, 7.86869131145613259e-4,
        1.48753612908506149e-2, 1.36929880922735805e-1, 5.99832206555887938e-1, 1]);
  return middle < 0 ? -z : z;
}

// A number times a power of ten, rounded half up by its decimal digits.
function wholeDigits(x, powerOfTen) {
  const [mantissa, exponent] = Math.abs(x).toExponential().split("e");
  const digits = mantissa.replace(".", ""), point = 1 + Number(exponent) + powerOfTen;
  const whole = BigInt(digits.slice(0, Math.max(0, point)).padEnd(point, "0") || "0");
  const rounded = point >= 0 && digits.charAt(point) >= "5" ? whole + 1n : whole;
  return (x < 0 && rounded > 0n ? "-" : "") + rounded;
}

const asShown = (x, text) => (typeof x === "string" ? x : x === x ? text(Number(x)) : "\u2013");
const wholeText = (x) => asShown(x, (number) => wholeDigits(number, 0));
const groupedText = (x) => wholeText(x).replace(/\B(?=(\d{3})+$)/g, ",");
const hundredthsText = (x) => {
  const parted = (digits) => digits.slice(0, -2).replace(/\B(?=(\d{3})+$)/g, ",") + "." + digits.slice(-2);
  const signed = (digits) => (digits.startsWith("-") ? "-" : "") + parted(digits.replace("-", "").padStart(3, "0"));
  return asShown(x, (number) => signed(wholeDigits(number, 2)));
};
const percentText = (x) => asShown(x, (number) => wholeDigits(number, 2) + "%");
const asText = (x) => (x !== x ? "-" : Number.isInteger(x) ? String(BigInt(x)) : String(x));
const joinText = (...parts) => parts.map(asText).join("");
const replaceText = (x, old, other) => asText(x).replaceAll(old, other);

// Operations on a row: `cell(k)` and `holds(k)` are what is made of the k-th of its n cells.

function leastWhere(n, otherwise, cell, holds) {
  let least = Infinity;
  for (let k = 0; k < n; k++) if (holds(k)) least = lesser(least, cell(k));
  return least < Infinity ? least : typeof otherwise === "string" ? NaN : otherwise;
}

function leastNumber(n, otherwise, cell) {
  let least = Infinity;
  for (let k = 0; k < n; k++) least = lesser(least, cell(k));
  return least < Infinity ? least : otherwise;
}

function greatestWhere(n, cell, holds) {
  let greatest = -Infinity;
  for (let k = 0; k < n; k++) greatest = greater(greatest, holds(k) && isNumber(cell(k)) ? cell(k) : 0);
  return greatest;
}

function firstWhere(n, otherwise, holds) {
  for (let k = 0; k < n; k++) if (holds(k)) return k + 1;
  return otherwise;
}

function countWhere(n, holds) {
  let count = 0;
  for (let k = 0; k < n; k++) count += Number(holds(k));
  return count;
}

const lesser = (least, x) => (x < least ? x : least); // none is not less
const greater = (greatest, x) => (x > greatest ? x : greatest);

// Columns over axes ----------------------------------------------------------------------------------------------

// Columns by name, each with its axes, the latest last; and where a position of one axis stands on another.
class Grid {
  constructor(sizes, places = new Map(), columns = new Map(), standing = new Map()) {
    this.sizes = sizes; // {axis: length}
    this.places = places; // axis -> axis -> a position on the second for each of the first
    this.columns = columns; // name -> [{axes, data}]
    this.standing = standing; // own axes and others -> where a column stands on the others, as far as that was asked
  }

  // This grid with one more axis, whose positions stand where given on others; columns put there stay there.
  along(axis, length, positions) {
    const mine = new Map();
    for (const [axisOn, where] of Object.entries(positions))
      for (const [far, placed] of this.places.get(axisOn) ?? [])
        mine.set(far, Int32Array.from(where, (position) => placed[position]));
    for (const [axisOn, where] of Object.entries(positions)) mine.set(axisOn, Int32Array.from(where));
    const places = new Map(this.places).set(axis, mine);
    return new Grid({ ...this.sizes, [axis]: length }, places, new Map(this.columns));
  }

  // A copy in which numbers, or other quantities by name, stand in the place of quantities.
  again(under = {}) {
    const copy = new Grid(this.sizes, this.places, new Map(this.columns), this.standing);
    for (const [name, value] of Object.entries(under))
      typeof value === "string" ? copy.add(name, this.latest(value)) : copy.put([], name, [value]);
    return copy;
  }

  put(axes, name, data) {
    this.add(name, { axes, data, key: String(axes) });
  }

  add(name, column) {
    this.columns.set(name, [...(this.columns.get(name) ?? []), column]);
  }

  latest(name) {
    return this.columns.get(name).at(-1);
  }

  // Of some axes what was worked out of them so far: layouts of columns, and axes that count.
  standingOn(axesKey) {
    if (!this.standing.has(axesKey)) this.standing.set(axesKey, { layouts: new Map(), counting: [] });
    return this.standing.get(axesKey);
  }

  // Where a column of its own axes stands on others: for each of them the offsets of its positions (null where it does
  // not count), and in bits which count; null where the column cannot be read over them. `places` are those of
  // `placesOn`.
  layoutOf({ axes: own, key }, axes, { layouts }) {
    const known = layouts.get(key);
    if (known !== undefined) return known;
    const made = this.makeLayout(own, axes);
    layouts.set(key, made);
    return made;
  }

  makeLayout(own, axes) {
    const standsOn = own.map((axis) =>
      axes.includes(axis) ? axes.indexOf(axis) : axes.findIndex((other) => this.places.get(other)?.has(axis)));
    if (standsOn.includes(-1)) return null;
    const offsets = axes.map(() => null);
    let stride = own.reduce((product, axis) => product * this.sizes[axis], 1);
    own.forEach((axis, i) => {
      stride /= this.sizes[axis];
      const over = axes[standsOn[i]];
      const where = over === axis ? null : this.places.get(over).get(axis);
      const offset = (offsets[standsOn[i]] ??= new Int32Array(this.sizes[over]));
      for (let k = 0; k < offset.length; k++) offset[k] += stride * (where ? where[k] : k);
    });
    return { offsets, bits: offsets.reduce((bits, offset, i) => (offset ? bits | (1 << i) : bits), 0), places: [] };
  }

  // The axes of some that count, by their bits: which they are, their names, and how many positions they have together.
  counting(axes, { counting }, bits) {
    if (!counting[bits]) {
      const own = [...axes.keys()].filter((i) => bits & (1 << i)), names = own.map((i) => axes[i]);
      const n = names.reduce((product, axis) => product * this.sizes[axis], 1);
      counting[bits] = { own, names, key: String(names), n, bits };
    }
    return counting[bits];
  }

  // The latest column of a name that can be read over some axes: its data and layout; undefined where there is none.
  find(name, axes, standing = this.standingOn(String(axes))) {
    const columns = this.columns.get(name);
    for (let k = columns ? columns.length - 1 : -1; k >= 0; k--) {
      const layout = this.layoutOf(columns[k], axes, standing);
      if (layout) return { data: columns[k].data, layout };
    }
  }

  has(name, axes) {
    return this.find(name, axes) !== undefined;
  }

  read(name, axes, standing) {
    const column = this.find(name, axes, standing);
    if (!column) throw new Error(`${name} is nowhere in the grid over ${axes.join(", ")}`);
    return column;
  }

  // For every position on some axes of a layout where a column stands: sums of offsets, the last axis the fastest.
  placesOn({ offsets, places }, axes, { own, bits }) {
    places[bits] ??= placesOf(own.map((i) => offsets[i]), own.map((i) => this.sizes[axes[i]]));
    return places[bits];
  }

  // Every number of a column over some axes, in their order.
  values(name, axes) {
    const { data, layout } = this.read(name, axes);
    const whole = this.counting(axes, this.standingOn(String(axes)), 2 ** axes.length - 1);
    return Array.from(this.placesOn(layout, axes, whole), (place) => data[place]);
  }

  // Rows of a column, of what it holds along an axis, that begin at these places; each is made once.
  rowsAt(starts, data, last, length) {
    const made = new Map();
    return Array.from(starts, (start) => {
      if (!made.has(start)) {
        const row = new data.constructor(length); // of numbers, or of texts
        for (let k = 0; k < length; k++) row[k] = data[last ? start + last[k] : start];
        made.set(start, row);
      }
      return made.get(start);
    });
  }

  // Functions in turn over some axes, each put into the grid on those of them that it differs by; rows of what they
  // read run along the axis `along`.
  evaluate(columns, axes, along) {
    const whole = [...axes, along], standing = this.standingOn(String(axes));
    const standingWhole = along && this.standingOn(String(whole)), axesBits = (1 << axes.length) - 1;
    for (const [name, { inputs, rows, isText, value }] of columns) {
      const n_inputs = inputs.length, read = new Array(n_inputs), given = new Array(n_inputs), places = new Array(n_inputs);
      const isRow = (m) => rows.length > 0 && rows.includes(inputs[m]);
      let bits = 0;
      for (let m = 0; m < n_inputs; m++) {
        read[m] = isRow(m) ? this.read(inputs[m], whole, standingWhole) : this.read(inputs[m], axes, standing);
        bits |= read[m].layout.bits & axesBits;
      }
      const own = this.counting(axes, standing, bits);
      for (let m = 0; m < n_inputs; m++) {
        const { data, layout } = read[m], isOfRow = isRow(m);
        places[m] = this.placesOn(layout, isOfRow ? whole : axes, own);
        given[m] = data;
        if (!isOfRow) continue;
        given[m] = this.rowsAt(places[m], data, layout.offsets[axes.length], this.sizes[along]);
        places[m] = given[m].keys().toArray?.() ?? [...given[m].keys()];
      }
      const data = isText ? new Array(own.n) : new Float64Array(own.n);
      KERNELS[n_inputs](data, value, given, places);
      this.add(name, { axes: own.names, data, key: own.key });
    }
  }

  // Tables of a program in turn, all or those named; a table whose fact is missing is left out.
  workOut(program, names = program.order) {
    for (const name of names) {
      const table = program.tables[name];
      if (table.where && !this.columns.has(table.where)) continue;
      if (table.under) this.workOutAgain(program, table);
      else if (table.step) this.repeat(table);
      else this.evaluate(table.columns, table.axes, table.rows);
    }
  }

  // So many steps, of which each reads what the one before it left.
  repeat({ axes, times, start, step, carry, rows }) {
    this.evaluate(start, axes);
    for (let n = 0; n < times; n++) {
      this.evaluate(step, axes, rows);
      const carried = Object.entries(carry).map(([name, quantity]) => [name, this.latest(quantity)]);
      for (const [name, column] of carried) this.add(name, column);
    }
  }

  // Tables once more under other values; what is kept of them is put in.
  workOutAgain(program, { under, tables, keeps }) {
    const copy = this.again(under);
    copy.workOut(program, tables);
    for (const [name, quantity] of Object.entries(keeps)) this.add(name, copy.latest(quantity));
  }
}

// Of every position of axes of these sides where a column stands: the sums of its offsets, the last axis the fastest.
function placesOf(offsets, sides) {
  let places = Int32Array.of(0);
  sides.forEach((side, i) => {
    const offset = offsets[i], wider = new Int32Array(places.length * side);
    for (let k = 0, at = 0; k < places.length; k++)
      for (let m = 0; m < side; m++) wider[at++] = places[k] + (offset ? offset[m] : 0);
    places = wider;
  });
  return places;
}
