import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { startTestIdentity } from '@plat/testkit/identity'
import { served } from './testing/served.ts'

// promtool judges what Prometheus would read. It comes from Debian's package `prometheus`, unpacked and not installed:
// needs apt and its mirrors, and lists of packages that `apt-get update` has fetched.
const PACKAGE = 'prometheus'
/** Found on the PATH. */
const APT = 'apt-get'
const DPKG = 'dpkg-deb'

let dir = ''
let promtool = ''

before(() => {
  dir = mkdtempSync(join(tmpdir(), 'plat-'))
  // The download needs no rights of root; apt warns where it runs with them, and is left to.
  execFileSync(APT, ['download', '-q', '-o', 'Acquire::Retries=5', PACKAGE], { cwd: dir, stdio: 'pipe' })
  const [archive] = readdirSync(dir)
  assert.ok(archive !== undefined)
  execFileSync(DPKG, ['--extract', join(dir, archive), join(dir, 'unpacked')])
  promtool = join(dir, 'unpacked/usr/bin/promtool')
})

after(() => rmSync(dir, { recursive: true }))

/** What promtool has to say: nothing when all is well. */
function complaints(metrics: string): string {
  const { status, stdout, stderr } = spawnSync(promtool, ['check', 'metrics'], { input: metrics, encoding: 'utf8' })
  return status === 0 ? `${stdout}${stderr}` : `exit ${status}\n${stdout}${stderr}`
}

test('promtool finds nothing wrong with the metrics of a gateway that has served calls of every kind', async (t) => {
  const { metrics } = await served(t)
  const text = await metrics()
  assert.match(text, /^plat_gateway_tool_pin_events_total\{/m)
  assert.equal(complaints(text), '')
})

test('promtool finds nothing wrong with the one series of the broker', async () => {
  // Shows D3.exposition.brokerOnlyBuildInfo.
  const broker = await startTestIdentity()
  try {
    const text = await (await fetch(`${broker.url}/metrics`)).text()
    assert.deepEqual(text.match(/^# TYPE .*$/gm), ['# TYPE plat_build_info gauge'])
    assert.equal(complaints(text), '')
  } finally {
    await broker.stop()
  }
})

test('promtool does complain', () => {
  assert.match(complaints('plat_calls 1\n'), /no help text/)
  assert.match(complaints('# HELP plat_calls Calls\n# TYPE plat_calls counter\nplat_calls 1\n'), /_total/)
})
