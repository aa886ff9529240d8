import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { startUp } from '../up/up.ts'
import { openConsole } from './console.ts'

test('plat console opens a link that logs the browser in once', async (t) => {
  const dir = tempFolder()
  await mkdir(join(dir, 'resources'))
  const up = await startUp({ dir, listen: '127.0.0.1:0', identityListen: '127.0.0.1:0', log: 'file' })
  t.after(() => up.stop())
  const lines: string[] = []
  const opened: string[] = []
  const write = (text: string) => void lines.push(text)
  const output = { out: write, err: write }
  const browse = (url: URL) => void opened.push(url.href)
  assert.equal(await openConsole({ dir, open: true, browse, env: {} }, output), 0)
  assert.equal(await openConsole({ dir, open: false, browse, env: {} }, output), 0)
  assert.deepEqual([lines.length, opened], [2, lines.slice(0, 1)])
  for (const line of lines) {
    const { origin, pathname, hash } = new URL(line)
    assert.deepEqual([origin, pathname], [up.env.PLAT_ADMIN_URL, '/console/'])
    const logIn = async () => {
      const body = JSON.stringify({ code: hash.replace('#link=', '') })
      const headers = { 'content-type': 'application/json', origin }
      return (await fetch(`${origin}/console/link`, { method: 'POST', headers, body })).status
    }
    assert.deepEqual([await logIn(), await logIn()], [204, 401])
  }
})
