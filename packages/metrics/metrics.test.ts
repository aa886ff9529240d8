import assert from 'node:assert/strict'
import { test } from 'node:test'
import { buildInfo } from '@plat/core'
import fc from 'fast-check'
import { createRegistry } from './registry.ts'
import { MAX_SERIES, type MetricRow } from './row.ts'

const build = { ...buildInfo('test'), version: '1', commit: 'c', goVersion: 'node26', tags: '' }
const plain = { area: 'Test', feature: '', help: 'Help' }

const rows = [
  { ...plain, name: 'calls_total', type: 'counter', labels: { action: ['allow', 'deny'], server: { cap: 2 } } },
  { ...plain, name: 'errors_total', type: 'counter', labels: {} },
  { ...plain, name: 'head', type: 'gauge', labels: {} },
  { ...plain, name: 'active', type: 'gauge', labels: { source: ['file', 'api'] } },
  { ...plain, name: 'wait_seconds', type: 'histogram', labels: { server: { cap: 9 } }, buckets: [0.1, 1] },
  { ...plain, name: 'commit_seconds', type: 'histogram', labels: {}, buckets: [0.5] },
  { ...plain, name: 'guard_seconds', type: 'summary', labels: { guard: { cap: 9 } } },
  { ...plain, name: 'dpop_total', type: 'counter', labels: {}, feature: 'dpop' },
] as const satisfies readonly MetricRow[]

const create = (features?: ReadonlySet<string>) =>
  createRegistry(rows, { component: 'test', build, ...(features && { features }) })

/** Returns the sample lines of one metric. */
function samples(text: string, name: string): string[] {
  return text.split('\n').filter((line) => line.startsWith(name))
}

test('a fresh registry shows build info and series without labels; labelled ones wait for their first event', () => {
  const text = create().expose()
  assert.deepEqual(
    text.split('\n').filter((line) => !line.startsWith('#')),
    [
      'plat_build_info{component="test",version="1",commit="c",goversion="node26",tags=""} 1',
      'errors_total 0',
      'head 0',
      'commit_seconds_bucket{le="0.5"} 0',
      'commit_seconds_bucket{le="+Inf"} 0',
      'commit_seconds_sum 0',
      'commit_seconds_count 0',
      'dpop_total 0',
      '',
    ],
  )
})

test('every metric has its HELP and TYPE before its samples, once', () => {
  const text = create().expose()
  for (const { name, type } of rows) {
    assert.equal(text.split(`# HELP ${name} Help\n# TYPE ${name} ${type}\n`).length, 2, name)
  }
})

test('counters add up per label values', () => {
  const registry = create()
  const calls = registry.counter('calls_total')
  calls.inc({ action: 'allow', server: 'a' })
  calls.inc({ server: 'a', action: 'allow' }, 2)
  calls.labels({ action: 'deny', server: 'a' }).inc()
  registry.counter('errors_total').inc()
  assert.deepEqual(samples(registry.expose(), 'calls_total'), [
    'calls_total{action="allow",server="a"} 3',
    'calls_total{action="deny",server="a"} 1',
  ])
  assert.deepEqual(samples(registry.expose(), 'errors_total'), ['errors_total 1'])
})

test('a value outside its closed set or over the cap is counted as _OTHER, and the first names stay', () => {
  const registry = create()
  const calls = registry.counter('calls_total')
  for (const server of ['a', 'b', 'c', 'd', 'a']) calls.inc({ action: 'allow', server })
  calls.inc({ action: 'explode', server: 'b' })
  assert.deepEqual(samples(registry.expose(), 'calls_total'), [
    'calls_total{action="allow",server="a"} 2',
    'calls_total{action="allow",server="b"} 1',
    'calls_total{action="allow",server="_OTHER"} 2',
    'calls_total{action="_OTHER",server="b"} 1',
  ])
})

test('the series of one metric never exceed their limit, however labels multiply', () => {
  const many = [
    { ...plain, name: 'x_total', type: 'counter', labels: { a: { cap: 1000 }, b: { cap: 1000 } } },
  ] as const satisfies readonly MetricRow[]
  const registry = createRegistry(many, { component: 'test', build })
  for (let at = 0; at < 2 * MAX_SERIES; at++) registry.counter('x_total').inc({ a: at % 200, b: Math.floor(at / 200) })
  const lines = samples(registry.expose(), 'x_total')
  assert.equal(lines.length, MAX_SERIES + 1)
  assert.equal(lines.at(-1), `x_total{a="_OTHER",b="_OTHER"} ${MAX_SERIES}`)
})

test('histogram buckets are cumulative and end with all', () => {
  const registry = create()
  const wait = registry.histogram('wait_seconds')
  for (const seconds of [0.05, 0.1, 0.5, 7]) wait.observe({ server: 'a' }, seconds)
  assert.deepEqual(samples(registry.expose(), 'wait_seconds'), [
    'wait_seconds_bucket{server="a",le="0.1"} 2',
    'wait_seconds_bucket{server="a",le="1"} 3',
    'wait_seconds_bucket{server="a",le="+Inf"} 4',
    'wait_seconds_sum{server="a"} 7.65',
    'wait_seconds_count{server="a"} 4',
  ])
})

test('a summary shows sum and count', () => {
  const registry = create()
  registry.summary('guard_seconds').observe({ guard: 'g' }, 2)
  registry.summary('guard_seconds').observe({ guard: 'g' }, 0.5)
  assert.deepEqual(samples(registry.expose(), 'guard_seconds'), [
    'guard_seconds_sum{guard="g"} 2.5',
    'guard_seconds_count{guard="g"} 2',
  ])
})

test('gauges show the last value set, or read it at exposition', () => {
  const registry = create()
  registry.gauge('active').set({ source: 'file' }, 4)
  registry.gauge('active').set({ source: 'file' }, 3)
  let head = 7
  registry.gauge('head').from(() => head)
  head = 8
  assert.deepEqual(samples(registry.expose(), 'active'), ['active{source="file"} 3'])
  assert.deepEqual(samples(registry.expose(), 'head'), ['head 8'])
})

test('series of a feature that is not configured count but are not shown', () => {
  const off = create(new Set())
  off.counter('dpop_total').inc()
  assert.deepEqual(samples(off.expose(), 'dpop_total'), [])
  assert.deepEqual(samples(create(new Set(['dpop'])).expose(), 'dpop_total'), ['dpop_total 0'])
})

test('any label value stays on one line and parses to itself', () => {
  const one = [{ ...plain, name: 'y_total', type: 'counter', labels: { v: { cap: 9 } } }] as const
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 40 }), (value) => {
      const registry = createRegistry(one, { component: 'test', build })
      registry.counter('y_total').inc({ v: value })
      const [line, ...more] = samples(registry.expose(), 'y_total')
      assert.deepEqual(more, [])
      const read = /^y_total\{v="((?:[^"\\\n]|\\[\\n"])*)"\} 1$/.exec(line ?? '')?.[1]
      const back = read?.replaceAll(/\\(.)/g, (_all, char: string) => (char === 'n' ? '\n' : char))
      assert.equal(back, value.includes('\u0000') ? '_OTHER' : value)
    }),
  )
})

test('an invalid table is refused when the registry is created', () => {
  const refuse = (bad: Partial<MetricRow>, message: RegExp) => {
    const row: MetricRow = { ...plain, name: 'a_total', type: 'counter', labels: {}, ...bad }
    assert.throws(() => createRegistry([row], { component: 'test', build }), message)
  }
  refuse({ name: 'a-b' }, /a-b is not a name/)
  refuse({ labels: { 'x y': ['a'] } }, /x y is not a name/)
  refuse({ type: 'histogram' }, /ascending buckets/)
  refuse({ type: 'histogram', buckets: [2, 1] }, /ascending buckets/)
  refuse({ buckets: [1] }, /ascending buckets/)
  const twice: MetricRow = { ...plain, name: 'a_total', type: 'counter', labels: {} }
  assert.throws(() => createRegistry([twice, twice], { component: 'test', build }), /a_total is in the table twice/)
})

test('names, kinds and labels that are not in the table do not compile', () => {
  const registry = create()
  // @ts-expect-error: no such metric
  assert.throws(() => registry.counter('nothing_total'))
  // @ts-expect-error: a gauge is not a counter
  assert.throws(() => registry.counter('head'))
  // @ts-expect-error: a label is missing
  registry.counter('calls_total').inc({ action: 'allow' })
  // @ts-expect-error: labels are required
  registry.counter('calls_total').inc()
})
