import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import { type BundleFixture, setUp } from './testing/fixture.ts'

const APPLIER = path.join(import.meta.dirname, '../../fixtures/bundles/apply.ts')
/** Maximum number of bundles that a process applies before it is killed. */
const BUNDLES = 12
const FILES = 6

function bundleOf(g: BundleFixture, revision: number): Buffer {
  const names = Array.from({ length: FILES }, (_, index) => `${index}.json`)
  return g.bundle(revision, Object.fromEntries(names.map((name) => [name, `${revision}`])))
}

/** Applies bundles from `first` on and is killed somewhere after the `after`th. Returns the last acknowledged revision. */
async function killed(t: TestContext, g: BundleFixture, first: number, after: number): Promise<number> {
  const paths: string[] = []
  for (let revision = first; revision < first + BUNDLES; revision++) {
    const file = path.join(path.dirname(g.dir), `${revision}.tgz`)
    await writeFile(file, bundleOf(g, revision))
    paths.push(file)
  }
  const child = spawn(process.execPath, [APPLIER, g.dir, g.statePath, ...paths], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => child.kill('SIGKILL'))
  let acknowledged = 0
  const lines = createInterface({ input: child.stdout })
  lines.on('line', (line) => {
    acknowledged = Number(line)
    // The kill interrupts it at an arbitrary point.
    if (acknowledged === first + after) child.kill('SIGKILL')
  })
  await Promise.all([once(child, 'exit'), once(lines, 'close')])
  return acknowledged
}

test('a killed process leaves one whole bundle, and no older one is accepted afterwards', async (t) => {
  const g = await setUp()
  let first = 2
  for (const after of [0, 1, 3]) {
    const acknowledged = await killed(t, g, first, after)
    const { store, verdict } = await g.open()
    const revision = store.inForce?.revision ?? 0
    assert.ok(acknowledged > 0 && revision >= acknowledged, `${revision} after ${acknowledged}`)
    assert.equal(store.isPlaced, true)
    const names = (await readdir(g.dir)).filter((name) => !name.startsWith('.'))
    const texts = await Promise.all(names.map((name) => readFile(path.join(g.dir, name), 'utf8')))
    assert.deepEqual(
      texts,
      Array.from({ length: FILES }, () => String(revision)),
    )
    assert.equal(await verdict(bundleOf(g, revision - 1)), 'revision')
    assert.equal(await verdict(bundleOf(g, revision)), 'unchanged')
    first = revision + 1
  }
})
