import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startFixture } from '@plat/testkit/mcp/fixture'
import { startShim } from '@plat/testkit/mcp/shim'
import { start } from '../plat.ts'

/** The longest a suite may take on the slowest machine, in milliseconds. */
const SUITE_MS = 280_000
const SUITE = fileURLToPath(import.meta.resolve('@modelcontextprotocol/conformance/dist/index.js'))
const PROGRAM = fileURLToPath(import.meta.resolve('@plat/testkit/mcp/stdio-fixture'))

const stack = new AsyncDisposableStack()
let direct = ''
let through = ''

before(async () => {
  const fixture = stack.adopt(await startFixture(), (it) => it.close())
  const shim = stack.adopt(await startShim(), (it) => it.close())
  const stdio = { command: process.execPath, args: [PROGRAM] }
  const resources = { 'MCPServer/fixture': JSON.stringify({ stdio, toolPins: { mode: 'off' } }) }
  const gateway = { corsOrigins: [new URL(shim.url).origin] }
  const plat = stack.use(await start({ resources, gateway }))
  const session = await plat.session('assistant', ['tools:fixture'])
  stack.defer(() => session.close())
  shim.aim(`${plat.env.PLAT_GATEWAY_URL}/mcp/fixture`, await session.token())
  direct = fixture.url
  through = shim.url
})

after(() => stack.disposeAsync())

/** Scenarios that a program on stdin and stdout cannot pass as a server with HTTP does. */
const OTHER: ReadonlySet<string> = new Set([
  // Keeps no events to resume a stream.
  'server-sse-polling',
  // Counts a stream for each response; the bridge sends JSON where nothing comes before it.
  'server-sse-multiple-streams',
  // Sees no headers.
  'http-custom-header-server-validation',
  // The fixture reads the capabilities of the connection, which the SDK sets over HTTP alone.
  'input-required-result-capability-check',
])

/** Scenarios of tasks: the fixture has them over HTTP alone. */
const TASKS = /^tasks-/

for (const revision of ['2025-11-25', '2026-07-28']) {
  test(`conformance ${revision}: verdicts on stdin and stdout through the gateway are those over HTTP alone`, async () => {
    const [alone, governed] = await Promise.all([verdicts(revision, direct), verdicts(revision, through)])
    assert.ok(alone.size > 30)
    const other = [...alone].filter(
      ([name, verdict]) => !OTHER.has(name) && !TASKS.test(name) && governed.get(name) !== verdict,
    )
    assert.deepEqual(
      other.map(([name, verdict]) => `${name}: alone ${verdict}; through ${governed.get(name)}`),
      [],
    )
  })
}

/** Runs the suite against a server: scenario to `✓ 2 passed, 0 failed`. */
async function verdicts(revision: string, url: string): Promise<Map<string, string>> {
  const output = await mkdtemp(join(tmpdir(), 'plat-conformance-'))
  const argv = [SUITE, 'server', '--url', url, '--requirements', revision, '-o', output]
  return new Promise((resolve, reject) => {
    execFile(process.execPath, argv, { timeout: SUITE_MS, maxBuffer: 2 ** 26 }, (error, stdout, stderr) => {
      const found = [...stdout.matchAll(/^([✓✗]) ([\w-]+): (\d+ passed, \d+ failed)/gm)]
      if (found.length === 0) reject(new Error(`the suite did not run: ${error?.message ?? ''}\n${stderr}`))
      resolve(new Map(found.map(([, mark, scenario = '', counts]) => [scenario, `${mark} ${counts}`])))
    })
  })
}
