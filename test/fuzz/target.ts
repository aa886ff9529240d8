import fc from 'fast-check'

/** The export `target` of a `*.fuzz.ts` file. */
export interface FuzzTarget {
  readonly name: string
  /** Looks for failures for about `seconds`; the same seed draws the same cases. Throwing is one failure as well. */
  run(seconds: number, seed: number): FuzzResult | Promise<FuzzResult>
}

export interface FuzzResult {
  readonly cases: number
  /** One text a failure: the property, its smallest counterexample and the error. */
  readonly failures?: readonly string[]
}

/** More cases than any run has time for. */
const ENDLESS = 2 ** 31 - 1

/** A target out of properties, which share its time evenly. */
export function fuzzTarget(name: string, properties: Readonly<Record<string, fc.IRawProperty<unknown>>>): FuzzTarget {
  return {
    name,
    async run(seconds, seed) {
      const share = (seconds * 1000) / Object.keys(properties).length
      const failures: string[] = []
      let cases = 0
      for (const [promise, property] of Object.entries(properties)) {
        const done = await fc.check(property, { seed, numRuns: ENDLESS, interruptAfterTimeLimit: share })
        cases += done.numRuns
        // To fast-check, a run whose time was over before its first case has failed; on a busy machine that shows nothing.
        const ranOut = done.interrupted && done.counterexample === null
        if (done.failed && !ranOut)
          failures.push(`${promise}: ${fc.stringify(done.counterexample)}: ${String(done.errorInstance)}`)
      }
      return { cases, failures }
    },
  }
}

/** Fragments that often break parsers. */
const ODD = [...'"\\{}[]:,-+.e09 \u0000é*', '\ud800'] as const

/**
 * Text near `samples`: one of them as it is or with a stretch of it replaced, one that is JSON with some of its members changed, or
 * pieces of them cut, doubled and mixed with characters that parsers trip over.
 */
export function near(samples: readonly string[]): fc.Arbitrary<string> {
  const sample = fc.constantFrom(...samples)
  const odd = fc.constantFrom(...ODD)
  const piece = fc.tuple(sample, fc.nat(), fc.nat(40)).map(([whole, at, length]) => {
    const from = at % (whole.length + 1)
    return whole.slice(from, from + length)
  })
  const mixed = fc
    .array(fc.oneof({ weight: 3, arbitrary: piece }, odd, fc.string({ maxLength: 4 })), { maxLength: 8 })
    .map((parts) => parts.join(''))
  const spliced = fc.tuple(sample, fc.nat(), fc.nat(12), fc.oneof(odd, piece)).map(([whole, at, length, other]) => {
    const from = at % (whole.length + 1)
    return whole.slice(0, from) + other + whole.slice(from + length)
  })
  const values = samples.flatMap(jsonOf)
  return values.length === 0
    ? fc.oneof(mixed, spliced, sample)
    : fc.oneof(mixed, spliced, sample, { weight: 3, arbitrary: changedJson(values) })
}

function jsonOf(text: string): readonly unknown[] {
  try {
    return [JSON.parse(text)]
  } catch {
    return []
  }
}

/** One change of a JSON value: `path` leads to a member, or to the place of one more; it becomes `value`, and is gone where that is undefined. */
interface Change {
  readonly path: readonly number[]
  readonly name: string
  readonly value: unknown
}

function changedJson(values: readonly unknown[]): fc.Arbitrary<string> {
  const change: fc.Arbitrary<Change> = fc.record({
    path: fc.array(fc.nat(), { minLength: 1, maxLength: 8 }),
    name: fc.oneof(fc.constantFrom('__proto__', 'constructor', 'toString', 'type', ''), fc.string({ maxLength: 4 })),
    value: fc.oneof(fc.constantFrom(undefined, null, true, 0, -1, 1e300, '', 'x', [], {}), fc.jsonValue()),
  })
  return fc
    .tuple(fc.constantFrom(...values), fc.array(change, { minLength: 1, maxLength: 3 }))
    .map(([value, changes]) => JSON.stringify(changes.reduce(changed, value)) ?? '')
}

function changed(value: unknown, { path: [first, ...path], name, value: other }: Change): unknown {
  if (first === undefined || typeof value !== 'object' || value === null) return other
  const rest = { path, name, value: other }
  if (Array.isArray(value)) {
    const at = first % (value.length + 1)
    return at === value.length ? [...value, other] : value.with(at, changed(value[at], rest))
  }
  const members = Object.entries(value)
  const at = first % (members.length + 1)
  // Not by assignment: a member may be called __proto__.
  return Object.fromEntries(
    at === members.length
      ? [...members, [name, other]]
      : members.map(([key, one], place) => [key, place === at ? changed(one, rest) : one]),
  )
}

/** Files that hold such a value as JSON, half of them with one byte replaced by others, and a few that hold anything. */
export function filesNear(value: fc.Arbitrary<unknown>): fc.Arbitrary<Uint8Array> {
  const file = value.map((one) => Buffer.from(JSON.stringify(one)))
  const changed = fc.tuple(file, fc.nat(), fc.uint8Array({ minLength: 1, maxLength: 3 })).map(([whole, at, noise]) => {
    const place = at % whole.length
    return Buffer.concat([whole.subarray(0, place), noise, whole.subarray(place + 1)])
  })
  return fc.oneof({ weight: 4, arbitrary: file }, { weight: 4, arbitrary: changed }, fc.uint8Array({ maxLength: 200 }))
}
