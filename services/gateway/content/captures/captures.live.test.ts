import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { openCipher } from '@plat/keys'
import { openCapture } from '@plat/ledger'
import { startGatewayProcess } from '@plat/testkit/gateway'
import { tempFolder } from '@plat/testkit/local'
import { json, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { until } from '@plat/testkit/until'

test('arguments of every recorded call of a configured namespace are captured under the hash of the record', async (t) => {
  // Shows D3.captureArgs.enabled, D3.captureArgs.namespaces, D3.dlp.captureArgs, D3.metric.plat_gateway_arg_captures_total,
  // D3.default.computed.captureArgs.dlpProfile.
  const dir = tempFolder()
  const key = path.join(dir, 'key')
  await writeFile(key, randomBytes(32).toString('base64'))
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers(json('{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'))
  const call = async (namespaces: readonly string[], captures: string) => {
    const captureArgs = { enabled: true, dir: path.join(dir, captures), key: `file://${key}`, namespaces }
    const gateway = await startGatewayProcess({
      servers: { notes: upstream.url },
      denied: ['forbidden'],
      config: { captureArgs },
    })
    try {
      for (const tool of ['send', 'forbidden']) {
        const params = { name: tool, arguments: { to: 'ada@example.com', tool } }
        const response = await fetch(`${gateway.url}/mcp/notes`, {
          method: 'POST',
          headers: {
            authorization: `Bearer ${gateway.token}`,
            accept: 'application/json, text/event-stream',
            'content-type': 'application/json',
          },
          body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
        })
        await response.text()
      }
      const metrics = async () => (await fetch(`${gateway.url}/metrics`)).text()
      if (captures === 'wanted') {
        await until(async () => /arg_captures_total\{outcome="written"\} 2/.test(await metrics()), 'both captures')
      }
      const records = async () => (await gateway.ledger()).map((line) => JSON.parse(line).rec)
      const ended = async () => (await records()).filter(({ kind }) => kind === 'outcome' || kind === 'decision')
      await until(async () => (await ended()).length === 2, 'both records')
      return await records()
    } finally {
      await gateway.close()
    }
  }
  const records = await call(['def*'], 'wanted')
  const cipher = await openCipher(key)
  for (const [kind, tool] of [
    ['outcome', 'send'],
    ['decision', 'forbidden'],
  ]) {
    const sha = String(records.find((rec) => rec.kind === kind && rec.tool === tool)?.argsSha256)
    const file = path.join(dir, 'wanted/default', sha.slice(0, 2), `${sha}.cap`)
    const capture = await openCapture(await readFile(file, 'utf8'), cipher)
    const args = JSON.stringify({ to: '[REDACTED:email]', tool })
    assert.equal(Buffer.from(capture?.args ?? []).toString(), args)
  }
  await call(['other'], 'unwanted')
  await assert.rejects(readdir(path.join(dir, 'unwanted')), /ENOENT/)
})

test('a gateway does not start with an unusable key; the error is one line', async () => {
  const captureArgs = { enabled: true, dir: '/tmp/none', key: 'file:///nowhere/key' }
  const starting = startGatewayProcess({ servers: {}, config: { captureArgs } })
  await assert.rejects(starting, /captureArgs\.key: \/nowhere\/key: cannot be read/)
})
