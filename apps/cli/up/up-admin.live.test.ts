import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { revocationsList } from '../revoke/revoke.ts'
import { screen, startUp } from './up.ts'

test('with an adminListen of its own, plat up and the commands find the admin API there and nowhere else', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'plat-'))
  t.after(() => rm(dir, { recursive: true }))
  await mkdir(join(dir, 'resources'))
  await writeFile(join(dir, 'gateway.json'), '{"adminListen": "localhost:0"}')
  const up = await startUp({ dir, listen: '127.0.0.1:0', identityListen: '127.0.0.1:0', log: 'file' })
  t.after(() => up.stop())
  const { PLAT_ADMIN_URL, PLAT_GATEWAY_URL, PLAT_ADMIN_TOKEN } = up.env
  assert.notEqual(PLAT_ADMIN_URL, PLAT_GATEWAY_URL)
  assert.ok((await screen(up)).some((line) => line.endsWith(PLAT_ADMIN_URL)))
  assert.ok((await readFile(join(dir, '.plat/env'), 'utf8')).includes(PLAT_ADMIN_URL))
  const headers = { authorization: `Bearer ${PLAT_ADMIN_TOKEN}` }
  const status = async (url: string) => (await fetch(`${url}/v1/revocations`, { headers })).status
  assert.deepEqual([await status(PLAT_ADMIN_URL), await status(PLAT_GATEWAY_URL)], [200, 404])
  const lines: string[] = []
  const write = (text: string) => void lines.push(text)
  assert.equal(await revocationsList({ dir, output: 'json' }, { out: write, err: write }), 0)
  assert.deepEqual(JSON.parse(lines.join('\n')), [])
})
