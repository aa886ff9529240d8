import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { Agent, request } from 'node:https'
import { join } from 'node:path'
import { test } from 'node:test'
import { connect } from 'node:tls'
import { systemClock } from '@plat/core'
import { createAuthority, type Issued } from '@plat/testkit/authority'
import { tempFolder } from '@plat/testkit/local'
import { json, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { until } from '@plat/testkit/until'
import { started } from '../../testing/started.ts'

const CALL = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{}}}'
const CALLERS = 8
/** Number of calls that must end before, between and after the two certificates. */
const CALLS = 50

/** Returns the common name of the certificate on a new connection. */
async function served(port: number, ca: string): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', servername: 'localhost', ca })
  await once(socket, 'secureConnect')
  const { CN } = socket.getPeerCertificate().subject
  socket.destroy()
  return String(CN)
}

test('a new certificate is served within tls.reloadSeconds, and no call in flight fails', async (t) => {
  // Shows D3.listen.tls.reloadSeconds.
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers(json('{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'))
  const root = await createAuthority({ name: 'root', now: systemClock.now() })
  const dir = tempFolder()
  const tls = { certFile: join(dir, 'tls.crt'), keyFile: join(dir, 'tls.key') }
  const renew = async (name: string) => {
    const leaf: Issued = await root.issue({ name, dnsNames: ['localhost'] })
    await writeFile(tls.certFile, leaf.pem)
    await writeFile(tls.keyFile, leaf.privateKey.export({ format: 'pem', type: 'pkcs8' }))
  }
  await renew('first')
  const own = { tls: { ...tls, reloadSeconds: 1 }, upstreams: { notes: upstream.url } }
  const { gateway, issuer } = await started(t, own)
  const authorization = `Bearer ${issuer.token()}`
  const accept = 'application/json, text/event-stream'
  const headers = { authorization, accept, 'content-type': 'application/json' }
  // Half of the callers keep their connection, the others open a new one each time.
  const agents = [new Agent({ keepAlive: true }), new Agent({ keepAlive: false })]
  const ended: number[] = []
  const call = (agent: Agent | undefined) =>
    new Promise<void>((resolve, reject) => {
      const options = { method: 'POST', headers, ca: root.pem, servername: 'localhost', ...(agent && { agent }) }
      const sent = request(`${gateway.url}/mcp/notes`, options, (response) => {
        response.resume().on('end', () => {
          ended.push(response.statusCode ?? 0)
          resolve()
        })
      })
      sent.on('error', reject).end(CALL)
    })
  let open = true
  const caller = async (_: unknown, index: number) => {
    while (open) await call(agents[index % agents.length])
  }
  const callers = Promise.all(Array.from({ length: CALLERS }, caller))
  await until(() => ended.length >= CALLS, 'calls under the first certificate')
  assert.equal(await served(gateway.port, root.pem), 'first')
  await renew('second')
  await until(async () => (await served(gateway.port, root.pem)) === 'second', 'the second certificate')
  const after = ended.length + CALLS
  await until(() => ended.length >= after, 'calls under the second certificate')
  open = false
  await callers
  for (const agent of agents) agent.destroy()
  assert.deepEqual([...new Set(ended)], [200])
})
