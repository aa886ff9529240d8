import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { startGatewayProcess } from '@plat/testkit/gateway'
import { startFixture } from '@plat/testkit/mcp/fixture'
import { startShim } from '@plat/testkit/mcp/shim'
import { listedAs } from './mcp-scenarios.ts'
import { suites, verdicts } from './mcp-verdicts.ts'

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

for (const suite of suites) {
  const { name, atLeast } = suite
  test(`conformance ${name}: verdicts through the gateway are those of the server alone`, async (t) => {
    const [alone, governed] = await Promise.all([verdicts(suite, direct, dir), verdicts(suite, through, dir)])
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
