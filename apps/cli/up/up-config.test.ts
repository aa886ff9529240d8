import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { homeOf } from '../shared/home.ts'
import { startUp } from './up.ts'
import { gatewayKeys } from './up-config.ts'

test('approvals are stored in .plat, and the static token can approve only on loopback', async () => {
  const dir = tempFolder()
  const home = homeOf(dir)
  const keys = (listen: string) => gatewayKeys(home, { listen, identityURL: 'http://127.0.0.1:8081' })
  assert.equal((await keys('127.0.0.1:8080')).approvalStorePath, join(home.state, 'approvals.jsonl'))
  const expected = { '127.0.0.1:8080': true, '127.9.9.9:1': true, '[::1]:8080': true, 'localhost:8080': true }
  for (const [listen, devTokenApprovers] of Object.entries({
    ...expected,
    ':8080': false,
    '0.0.0.0:8080': false,
    '[::]:8080': false,
    '10.0.0.1:8080': false,
    nonsense: false,
  })) {
    assert.deepEqual((await keys(listen)).adminAuth, { devTokenApprovers }, listen)
  }
  for (const [own, devTokenApprovers] of [
    ['{"adminListen": ":9090"}', false],
    ['{"listen": "0.0.0.0:8080"}', false],
    ['{"listen": ":8080", "adminListen": "127.0.0.1:9090"}', true],
    ['{"adminListen": ""}', true],
  ] as const) {
    await writeFile(join(dir, 'gateway.json'), own)
    assert.deepEqual((await keys('127.0.0.1:8080')).adminAuth, { devTokenApprovers }, own)
  }
  await writeFile(join(dir, 'gateway.json'), '{"adminAuth": {"devTokenApprovers": false}}')
  assert.deepEqual((await keys('127.0.0.1:8080')).adminAuth, { devTokenApprovers: false })
})

test('an address without a host or a colon is refused with the fix, before anything is written', async () => {
  const dir = tempFolder()
  const at = { dir, listen: '127.0.0.1:0', identityListen: '127.0.0.1:0', log: 'file' as const }
  await assert.rejects(startUp({ ...at, listen: '8180' }), {
    exitCode: 2,
    message:
      '-listen "8180" is not an address; write -listen 127.0.0.1:8180 for this machine, or -listen :8180 for all of its addresses',
  })
  await assert.rejects(
    startUp({ ...at, identityListen: 'here' }),
    /-identity-listen "here" is not an address; write it as /,
  )
  assert.equal(existsSync(join(dir, '.plat')), false)
})
