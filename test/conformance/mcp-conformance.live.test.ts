import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startGatewayProcess } from '@plat/testkit/gateway'
import { startFixture } from '@plat/testkit/mcp/fixture'
import { startShim } from '@plat/testkit/mcp/shim'
import { listedAs } from './mcp-scenarios.ts'

/** The longest a whole suite may take on the slowest machine, in milliseconds. */
const SUITE_MS = 280_000

const entry = (name: string) => fileURLToPath(import.meta.resolve(`${name}/dist/index.js`))

/** Each suite with the least number of scenarios that it must have run: a suite that stops early must not look equal. */
const suites: readonly [name: string, entry: string, options: readonly string[], atLeast: number][] = [
  ['0.2.0-alpha.12, revision 2025-11-25', '@modelcontextprotocol/conformance', ['--requirements', '2025-11-25'], 33],
  ['0.2.0-alpha.12, revision 2026-07-28', '@modelcontextprotocol/conformance', ['--requirements', '2026-07-28'], 50],
  ['0.1.16', 'conformance-legacy', ['--suite', 'all'], 32],
]

const closers: (() => unknown)[] = []
let direct = ''
let through = ''
let dir = ''

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'plat-'))
  closers.push(() => rm(dir, { recursive: true, force: true }))
  const fixture = await startFixture()
  closers.push(() => fixture.close())
  const shim = await startShim()
  closers.push(() => shim.close())
  const corsOrigins = [new URL(shim.url).origin]
  const gateway = await startGatewayProcess({ servers: { fixture: fixture.url }, config: { corsOrigins } })
  closers.push(() => gateway.close())
  shim.aim(`${gateway.url}/mcp/fixture`, gateway.token)
  direct = fixture.url
  through = shim.url
})

after(async () => {
  for (const close of closers.reverse()) await close()
})

for (const [name, suite, options, atLeast] of suites) {
  test(`conformance ${name}: verdicts through the gateway are those of the server alone`, async (t) => {
    const [alone, governed] = await Promise.all([verdicts(suite, options, direct), verdicts(suite, options, through)])
    assert.ok(alone.size >= atLeast, `only ${alone.size} scenarios ran`)
    assert.deepEqual([...governed.keys()].sort(), [...alone.keys()].sort())
    const problems = [...alone].flatMap(([scenario, verdict]) =>
      problem(scenario, verdict, governed.get(scenario) ?? ''),
    )
    assert.deepEqual(problems, [])
    t.diagnostic(`${alone.size} scenarios`)
  })
}

/** The problems of a scenario, one line each. */
function problem(scenario: string, alone: string, governed: string): string[] {
  switch (listedAs(scenario)) {
    case 'same':
      // A scenario that fails everywhere shows nothing.
      return alone === governed && alone.startsWith('✓')
        ? []
        : [`${scenario}: alone ${alone}; through the gateway ${governed}`]
    case 'open':
      return governed.startsWith('✗') ? [] : [`${scenario} is listed as open and passes: move it in mcp-scenarios.ts`]
    case 'vacuous':
      return []
    case null:
      return [`${scenario} is not listed in mcp-scenarios.ts`]
  }
}

/** Runs a suite against a server: scenario to `✓ 2 passed, 0 failed`. The suite's exit code says nothing more. */
function verdicts(suite: string, options: readonly string[], url: string): Promise<Map<string, string>> {
  const output = join(dir, `${suite}-${new URL(url).port}`.replaceAll('/', '-'))
  const argv = [entry(suite), 'server', '--url', url, ...options, '-o', output]
  return new Promise((resolve, reject) => {
    execFile(process.execPath, argv, { timeout: SUITE_MS, maxBuffer: 2 ** 26 }, (error, stdout, stderr) => {
      const found = [...stdout.matchAll(/^([✓✗]) ([\w-]+): (\d+ passed, \d+ failed)/gm)]
      if (found.length === 0) reject(new Error(`the suite did not run: ${error?.message ?? ''}\n${stderr}`))
      resolve(new Map(found.map(([, mark, scenario = '', counts]) => [scenario, `${mark} ${counts}`])))
    })
  })
}
