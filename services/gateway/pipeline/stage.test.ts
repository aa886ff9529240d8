import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deny } from '../call/index.ts'
import { matrix } from './matrix.ts'
import { planRows } from './runner/plan.ts'
import { admitted, stage, stages } from './stage.ts'

// Code that must not compile follows a `@ts-expect-error`: the type check fails if it compiles.

const revoked = stage({ name: 'revoked', needs: ['identity'], gives: [], skipped: {}, admit: () => admitted })
const taints = stage({
  name: 'taints',
  needs: ['identity'],
  gives: ['taints'],
  skipped: { taints: { labels: [] } },
  admit: () => ({ taints: { labels: [] } }),
})
const redact = stage({
  name: 'redact',
  needs: ['taints'],
  gives: ['redacted'],
  skipped: { redacted: null },
  admit: (call) => (call.facts.taints.labels.length > 0 ? deny('dlp_denied', 'no') : { redacted: null }),
})

test('a list in the order of its facts compiles', () => {
  assert.equal(stages([revoked, taints, redact]).length, 3)
})

test('a stage before the one that gives its facts does not compile', () => {
  // @ts-expect-error `redact` needs `taints`, which comes later.
  assert.ok(stages([revoked, redact, taints]))
})

test('a stage that needs a fact that no stage gives does not compile', () => {
  // @ts-expect-error no stage gives `taints`.
  assert.ok(stages([revoked, redact]))
})

test('a stage that reads a fact which it did not declare does not compile', () => {
  const nosy = stage({
    name: 'guard',
    needs: ['identity'],
    gives: [],
    skipped: {},
    // @ts-expect-error `target` was not declared.
    admit: (call) => (call.facts.target === null ? admitted : admitted),
  })
  assert.equal(nosy.name, 'guard')
})

test('a forgotten return does not compile, whether the stage is synchronous or not', () => {
  const sync = stage({
    name: 'guard',
    needs: ['identity'],
    gives: [],
    skipped: {},
    // @ts-expect-error no verdict on one path.
    admit: (call) => (call.pass === 1 ? admitted : undefined),
  })
  // @ts-expect-error no verdict at all.
  const later = stage({ name: 'guard', needs: ['identity'], gives: [], skipped: {}, admit: async () => {} })
  assert.deepEqual([sync.name, later.name], ['guard', 'guard'])
})

test('a stage that does not return the fact it promised does not compile', () => {
  const forgetful = stage({
    name: 'pins',
    needs: ['identity'],
    gives: ['pin'],
    skipped: { pin: null },
    // @ts-expect-error `pin` was promised.
    admit: () => ({}),
  })
  const lazy = stage({
    name: 'pins',
    needs: ['identity'],
    gives: ['pin'],
    skipped: { pin: null },
    // @ts-expect-error a stage that gives a fact cannot just admit.
    admit: () => admitted,
  })
  assert.deepEqual([forgetful.name, lazy.name], ['pins', 'pins'])
})

test('creating plans throws for stages that are out of order, listed twice, or missing', () => {
  const at = (name: 'revoked' | 'resolve' | 'policy' | 'meter') => ({ ...revoked, name })
  assert.throws(() => planRows(matrix, [at('resolve'), at('revoked')], []), /revoked must be listed once, in the order/)
  assert.throws(() => planRows(matrix, [at('revoked'), at('revoked')], []), /once/)
  assert.throws(() => planRows(matrix, [at('revoked'), at('policy')], []), /resolve is missing/)
  assert.throws(
    () => planRows(matrix, [at('revoked'), at('resolve'), at('meter')], []),
    /meter is not a request-side stage/,
  )
  assert.ok(planRows(matrix, [at('revoked'), at('resolve'), at('policy')], []))
})
