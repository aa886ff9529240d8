import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Totals } from '../costs/totals.ts'
import { entriesOf } from './entries.ts'

const at = (second: number) => `2026-01-01T00:00:${String(second).padStart(2, '0')}Z`
const line = (seq: number, rec: { readonly kind: string; readonly [member: string]: unknown }) => ({
  seq,
  rec: { at: at(seq), ...rec },
})

test('intent and outcome of a call are one entry, and a call that has not ended is running', () => {
  const entries = entriesOf([
    line(1, { kind: 'intent', call: 'a', server: 'notes', tool: 'add' }),
    line(2, { kind: 'intent', call: 'b', server: 'notes', tool: 'read' }),
    line(3, {
      kind: 'outcome',
      call: 'a',
      server: 'notes',
      tool: 'add',
      result: 'completed',
      ms: 2000,
      costMicros: 5,
      currency: 'USD',
    }),
    line(4, { kind: 'decision', call: 'c', tool: 'x', code: 'policy_denied', policy: 'p', rule: 'r' }),
    line(5, { kind: 'approval', approval: 'q', event: 'granted', by: 'user:ada' }),
  ])
  assert.deepEqual(
    entries.map(({ seq, state, target, ms, detail }) => [seq, state, target, ms, detail]),
    [
      [3, 'completed', 'notes/add', 2000, ''],
      [2, 'running', 'notes/read', null, ''],
      [4, 'denied', 'x', null, 'policy_denied · p#r'],
      [5, 'approval granted', 'approval', null, 'user:ada'],
    ],
  )
  assert.equal(entries[0]?.startMs, Date.parse(at(1)))
})

test('a page that begins in the middle of a call shows it from its computed start', () => {
  const [entry] = entriesOf([line(9, { kind: 'outcome', call: 'a', ms: 4000, result: 'completed' })])
  assert.equal(entry?.startMs, Date.parse(at(5)))
})

test('a call that waited for its approval begins with its request, before the approval', () => {
  const entries = entriesOf([
    line(2, { kind: 'approval', approval: 'q', event: 'created' }),
    line(5, { kind: 'approval', approval: 'q', event: 'granted' }),
    line(6, { kind: 'intent', call: 'a', tool: 'delete' }),
    line(7, { kind: 'outcome', call: 'a', tool: 'delete', ms: 6000, result: 'completed' }),
  ])
  assert.deepEqual(
    entries.map(({ seq, startMs, ms }) => [seq, startMs, ms]),
    [
      [7, Date.parse(at(1)), 6000],
      [2, Date.parse(at(2)), null],
      [5, Date.parse(at(5)), null],
    ],
  )
})

test('what was redacted in a call is an entry after it, and what was in its response is at its end', () => {
  const hit = (action: string, detector: string, direction: string, count = 1) => ({
    action,
    count,
    detector,
    direction,
  })
  const inArguments = hit('redact', 'credit_card', 'arguments', 2)
  const calls = [
    line(1, { kind: 'intent', call: 'a', tool: 'add', dlp: [inArguments] }),
    line(2, { kind: 'intent', call: 'b', tool: 'read' }),
  ]
  const outcome = line(5, {
    ...{ kind: 'outcome', call: 'a', tool: 'add', result: 'completed', ms: 4000 },
    dlp: [
      inArguments,
      hit('deny', 'iban', 'response'),
      hit('redact', 'iban', 'arguments'),
      hit('odd', '', 'arguments'),
    ],
  })
  const rows = (lines: typeof calls) =>
    entriesOf(lines).map(({ seq, startMs, state, target, detail }) => [seq, startMs, state, target, detail])
  const redacted = 'redacted'
  assert.deepEqual(rows(calls), [
    [1, Date.parse(at(1)), 'running', 'add', ''],
    [1, Date.parse(at(1)), redacted, 'add', 'arguments: 2 credit_card'],
    [2, Date.parse(at(2)), 'running', 'read', ''],
  ])
  assert.deepEqual(rows([...calls, outcome]), [
    [5, Date.parse(at(1)), 'completed', 'add', ''],
    [5, Date.parse(at(1)), redacted, 'add', 'arguments: 2 credit_card, 1 iban'],
    [2, Date.parse(at(2)), 'running', 'read', ''],
    [5, Date.parse(at(5)), 'refused', 'add', 'response: 1 iban'],
  ])
  const keys = entriesOf([...calls, outcome]).map(({ key }) => key)
  assert.equal(new Set(keys).size, keys.length)
})

test('calls are added up by group, with currencies apart, refusals, tokens and energy', () => {
  const totals = new Totals()
  const rec = {
    kind: 'outcome',
    namespace: 'n',
    agent: 'a',
    model: 'm',
    result: 'completed',
    usage: { prompt: 3, completion: 4 },
  }
  totals.add([
    line(1, {
      ...rec,
      facts: { groups: ['research', 'sales'] },
      costMicros: 5,
      currency: 'USD',
      energy: { microWh: { min: 1, max: 2 } },
    }),
    line(2, { ...rec, costMicros: 7, currency: 'EUR', user: 'uma' }),
    line(3, { ...rec, agent: 'b', result: 'denied' }),
  ])
  const [first, second] = totals.by('agent')
  assert.deepEqual(
    [first?.name, first?.calls, [...(first?.micros ?? [])]],
    [
      'n/a',
      2,
      [
        ['USD', 5],
        ['EUR', 7],
      ],
    ],
  )
  assert.deepEqual([first?.promptTokens, first?.completionTokens, first?.minMicroWh, first?.maxMicroWh], [6, 8, 1, 2])
  assert.deepEqual([second?.name, second?.denied], ['n/b', 1])
  assert.deepEqual(
    totals.by('group').map(({ name, calls }) => [name, calls]),
    [
      ['no group', 2],
      ['research', 1],
      ['sales', 1],
    ],
    'a call counts in each group of its user',
  )
  assert.deepEqual(
    totals.by('day').map(({ name, calls }) => [name, calls]),
    [['2026-01-01', 3]],
  )
})
