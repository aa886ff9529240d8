import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { systemClock } from '@plat/core'
import { silentLog } from '@plat/process'
import { moveStateToPostgres } from '@plat/state'
import { usePostgres } from '@plat/testkit/postgres/server'
import { startProviders, VaultFixture } from './authn/token-vault/testing/fixture.ts'
import { checkGatewayConfig, type GatewayConfig, typedConfig } from './config.ts'
import { readStateFiles } from './state-files.ts'
import { stateJournals } from './state-journals.ts'

const postgres = usePostgres()
const providers = await startProviders()
after(() => providers.close())

function configOf(own: object): GatewayConfig {
  const text = JSON.stringify({ identity: { publicKeyFiles: ['pub.pem'] }, policyFile: 'policies.json', ...own })
  return typedConfig(checkGatewayConfig(text, { exists: () => true }).config)
}

test('a connected account that is moved to Postgres works there, and every journal of the gateway is in the list', async (t) => {
  const fixture = await VaultFixture.start(t, providers)
  await fixture.connect(fixture.browser(), 'ada', 'ada-at-hub')
  assert.equal((await fixture.callAs('ada')).as, 'ada-at-hub')
  await postgres.started
  const dsnFile = await fixture.file('dsn', postgres.dsn)
  const config = configOf(fixture.stateConfig)
  const move = async () => {
    using source = await readStateFiles(config, { clock: systemClock, log: silentLog })
    const { state } = source
    const moved = await moveStateToPostgres({ dsn: postgres.dsn, schema: 'plat', state, zone: 'UTC', isDry: false })
    assert.deepEqual(
      moved.filter(({ kind }) => kind === 'accounts').map(({ keys, outcome }) => [keys, outcome]),
      [[1, 'moved']],
    )
  }
  await fixture.restart({}, move, { stateBackend: { type: 'postgres', dsnFile } })
  assert.equal((await fixture.callAs('ada')).as, 'ada-at-hub')
  const opened = await postgres.rows('SELECT name FROM plat.journal')
  const known = new Set(stateJournals(config).map(({ name }) => name))
  // Without shared state it is in memory.
  known.add('console-sessions')
  assert.deepEqual(
    opened.map(({ name }) => String(name)).filter((name) => !known.has(name)),
    [],
  )
  assert.ok(opened.length >= 10)
})
