import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { started } from '../testing/started.ts'

const REPOSITORY = path.resolve(import.meta.dirname, '../../..')
/** Folders of which ARCHITECTURE.md lists every file that runs. */
const SPINE = /^services\/gateway\/(?:pipeline|planes\/(?:mcp|wire))\//

test('ARCHITECTURE.md lists the files that one tool call runs through, and no others', async (t) => {
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers((request, response) => {
    const { id } = JSON.parse(request.body)
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result: { content: [] } }))
  })
  const { gateway, issuer } = await started(t, { upstreams: { notes: upstream.url } })
  const call = async () => {
    const response = await fetch(`${gateway.url}/mcp/notes`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${issuer.token({ scope: 'tools:notes' })}`,
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'read', arguments: {} } }),
    })
    assert.deepEqual(await response.json(), { jsonrpc: '2.0', id: 1, result: { content: [] } })
  }
  // The first call opens the connection to the server.
  const ran = new Set([...(await filesRunBy(call)), ...(await filesRunBy(call))])
  const section = readFileSync(path.join(REPOSITORY, 'ARCHITECTURE.md'), 'utf8').split('\n## ')
  const page = section.find((text) => text.startsWith('One tool call')) ?? assert.fail('no section "One tool call"')
  const listed = [...page.matchAll(/^\| `([^`]+)` \|/gm)].map(([, file = '']) => file)
  assert.deepEqual(listed.filter((file) => SPINE.test(file)).sort(), [...ran].filter((file) => SPINE.test(file)).sort())
  const others = listed.filter((file) => !SPINE.test(file) && !ran.has(file))
  assert.deepEqual(others, [], 'listed files that do not run')
})

/** The files of the repository with a function that runs during `work`, relative to the repository. */
async function filesRunBy(work: () => Promise<void>): Promise<readonly string[]> {
  const session = new Session()
  session.connect()
  try {
    await session.post('Profiler.enable')
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
    await session.post('Profiler.takePreciseCoverage')
    await work()
    const { result } = await session.post('Profiler.takePreciseCoverage')
    return result
      .filter(({ functions }) =>
        functions.some(({ functionName, ranges }) => functionName !== '' && ranges.some(({ count }) => count > 0)),
      )
      .filter(({ url }) => url.startsWith('file:') && !url.includes('/node_modules/'))
      .map(({ url }) => path.relative(REPOSITORY, fileURLToPath(url)))
  } finally {
    session.disconnect()
  }
}
