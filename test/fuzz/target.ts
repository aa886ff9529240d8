import fc from 'fast-check'

/** What a `*.fuzz.ts` file exports as `target`. */
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

/** Text near `samples`: pieces of them cut, doubled and mixed with characters that parsers trip over. */
export function near(samples: readonly string[]): fc.Arbitrary<string> {
  const piece = fc
    .tuple(fc.constantFrom(...samples), fc.nat(40), fc.nat(40))
    .map(([sample, from, length]) => sample.slice(from, from + length))
  const odd = fc.constantFrom(
    '"',
    '\\',
    '{',
    '}',
    '[',
    ']',
    ':',
    ',',
    '-',
    '+',
    '.',
    'e',
    '0',
    '9',
    ' ',
    '\u0000',
    '\ud800',
    'é',
    '*',
  )
  return fc
    .array(fc.oneof({ weight: 3, arbitrary: piece }, odd, fc.string({ maxLength: 4 })), { maxLength: 8 })
    .map((parts) => parts.join(''))
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
