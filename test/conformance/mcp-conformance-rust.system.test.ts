import assert from 'node:assert/strict'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { startGatewayProcess } from '@plat/testkit/gateway'
import { tempFolder } from '@plat/testkit/local'
import { startShim } from '@plat/testkit/mcp/shim'
import { rustProgram, startPrinting } from '@plat/testkit/processes/cargo'
import { suites, verdicts } from './mcp-verdicts.ts'

/** The server takes minutes to compile, so this runs in `npm run long`. */
const program =
  process.env.PLAT_TEST_RUST_SERVER === '1'
    ? await rustProgram(path.join(import.meta.dirname, 'rust'), 'conformance')
    : { missing: 'it takes minutes to compile: npm run long -- -only conformance' }
const skip = 'missing' in program ? program.missing : false

const closers: (() => unknown)[] = []
let direct = ''
let through = ''

before(async () => {
  if (!('path' in program)) return
  const server = await startPrinting(program.path)
  const shim = await startShim()
  const corsOrigins = [new URL(shim.url).origin]
  const gateway = await startGatewayProcess({ servers: { rust: server.url }, config: { corsOrigins } })
  closers.push(
    server.close,
    () => shim.close(),
    () => gateway.close(),
  )
  shim.aim(`${gateway.url}/mcp/rust`, gateway.token)
  direct = server.url
  through = shim.url
})

after(async () => {
  for (const close of closers.reverse()) await close()
})

for (const suite of suites) {
  test(`the Rust SDK's server, conformance ${suite.name}: verdicts through the gateway are those of the server alone`, {
    skip,
  }, async (t) => {
    const dir = tempFolder()
    const alone = await verdicts(suite, direct, dir)
    const governed = await verdicts(suite, through, dir)
    assert.ok(alone.size >= suite.atLeast, `only ${alone.size} scenarios ran`)
    const differing = [...alone].filter(([scenario, verdict]) => governed.get(scenario) !== verdict)
    const lines = differing.map(
      ([scenario, verdict]) => `${scenario}: alone ${verdict}; governed ${governed.get(scenario)}`,
    )
    assert.deepEqual(lines, [])
    assert.equal(governed.size, alone.size)
    const passed = [...alone.values()].filter((verdict) => verdict.startsWith('✓')).length
    t.diagnostic(`${passed} of ${alone.size} scenarios pass, directly and through the gateway`)
  })
}
