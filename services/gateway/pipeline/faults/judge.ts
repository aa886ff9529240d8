import type { ScenarioResult } from './fixture.ts'
import { type End, isHeld, type Scenario } from './scenario.ts'

/** Returns a description of each guarantee of the runner that this scenario violated. */
export function brokenPromises(fixture: ScenarioResult): readonly string[] {
  const broken = [...fixture.mistakes]
  const expect = (holds: boolean, promise: string) => {
    if (!holds) broken.push(promise)
  }
  const closings = fixture.records.filter((rec) => rec.kind !== 'intent')
  expect(fixture.over, 'the run ends')
  expect(closings.length === 1, `one closing record, not ${closings.length}`)
  const intents = fixture.records.length - closings.length
  expect(intents <= 1, 'at most one intent')
  expect(fixture.sink.finished || fixture.sink.tunnelled !== null, 'the caller gets an end')
  expect(fixture.held === 0, `no hold is left: ${fixture.held}`)
  expect(fixture.fixture.live.size === 0, 'no live call is left')
  for (const [name, ends] of fixture.reviewEnds) expect(ends === 1, `the review ${name} ends once, not ${ends} times`)
  expect(settledRight(fixture), `settled ${JSON.stringify(fixture.settles)} after ${JSON.stringify(fixture.admits)}`)
  const forwards = neverForwarded(fixture.scenario) ? 0 : 1
  expect(fixture.forwards === forwards, `forwarded ${forwards} times, not ${fixture.forwards}`)
  const [closing] = closings
  // The fake stage `reserve` holds money, so both audit policies require an intent.
  if (forwards === 1)
    expect(intents === 1 && closing?.kind === 'outcome', 'a forwarded call has an intent and an outcome')
  const wanted = expected(fixture.scenario)
  const recorded = `${closing?.result} ${closing?.code}`
  if (wanted !== null) expect(recorded === wanted, `the record has ${wanted}, not ${recorded}`)
  return broken
}

/** Returns true if stages were settled once, in reverse order of admission, and a rewound first pass before the second started. */
function settledRight({ admits, settles, scenario }: ScenarioResult): boolean {
  const second = admits.some(({ pass }) => pass === 2)
  const first = admits.filter(({ pass }) => pass === 1).map(({ name }) => name)
  const last = second ? admits.filter(({ pass }) => pass === 2).map(({ name }) => name) : first
  const rewound = settles.filter(({ result }) => result === 'rewound').map(({ name }) => name)
  const ended = settles.filter(({ result }) => result !== 'rewound').map(({ name }) => name)
  // A stage that admits after its deadline is settled at that time, perhaps after all others.
  const late = scenario.stage?.fault === 'late' ? scenario.stage.name : null
  const inOrder = (names: readonly string[]) => names.filter((name) => name !== late).join()
  return (
    rewound.join() === (rewound.length > 0 || second ? [...first].reverse().join() : '') &&
    inOrder(ended) === inOrder([...(rewound.length > 0 && !second ? [] : last)].reverse()) &&
    ended.length === new Set(ended).size &&
    ended.length === (rewound.length > 0 && !second ? 0 : last.length)
  )
}

function neverForwarded(scenario: Scenario): boolean {
  if (scenario.stage !== undefined || scenario.ending === 'held, then revoked') return true
  if (scenario.ledger === 'intent never, and the caller leaves') return true
  return scenario.ledger !== undefined && scenario.audit === 'closed'
}

/** Returns the expected `result code` of the closing record, or null when the scenario does not determine it. */
function expected(scenario: Scenario): string | null {
  const { stage, review, plane, ledger, settle } = scenario
  if (stage !== undefined) return scenario.ending === 'held, then revoked' ? null : stageEnding(scenario)
  if (review !== undefined || plane !== undefined || ledger !== undefined) return null
  if (settle !== undefined && isHeld(scenario)) return null
  return endingRecords[scenario.ending]
}

/** A decision has no result. */
const endingRecords: Readonly<Record<End, string>> = {
  ends: 'completed undefined',
  dies: 'failed upstream_error',
  'client leaves': 'cancelled undefined',
  cut: 'cut revoked',
  'held, then released': 'completed undefined',
  'held, then revoked': 'undefined revoked',
}

function stageEnding({ stage }: Scenario): string | null {
  switch (stage?.fault) {
    case 'denial':
    case 'async denial':
    case 'no longer holds':
      return 'undefined policy_denied'
    case 'never, and the caller leaves':
      return 'cancelled undefined'
    case 'never, and the caller is revoked':
      return 'undefined revoked'
    default:
      return 'undefined internal'
  }
}
