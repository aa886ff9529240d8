import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import path from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { closed, listening, tempFolder } from '@plat/testkit/local'
import { startModelServer } from '@plat/testkit/model-server'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { pythonWith } from '@plat/testkit/processes/python'
import { started } from '../../../testing/started.ts'

const run = promisify(execFile)
const here = (name: string) => path.join(import.meta.dirname, name)

const python = await pythonWith(here('requirements.txt'))
const skip = 'missing' in python ? python.missing : false

const candidate = (text: string, finishReason?: string) =>
  JSON.stringify({ candidates: [{ content: { role: 'model', parts: [{ text }] }, finishReason }] })

test('Google’s Python client reaches Gemini and a provider of another API, and raises refusals with their text', {
  skip,
}, async (t) => {
  assert.ok('path' in python)
  const google = createServer((request, response) => {
    request.resume()
    if (!request.url?.includes('stream'))
      return void response.writeHead(200, { 'content-type': 'application/json' }).end(candidate('Hello', 'STOP'))
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end(`data: ${candidate('Hel')}\r\n\r\ndata: ${candidate('lo', 'STOP')}\r\n\r\n`)
  })
  const upstream = `http://127.0.0.1:${await listening(google)}`
  const openai = await startModelServer()
  t.after(() => Promise.all([closed(google), openai.close()]))
  const dir = tempFolder()
  const rules = [
    { name: 'no-large', action: 'deny', match: { tools: ['large-*'] }, reason: 'large models are for research' },
    { name: 'rest', action: 'allow' },
  ]
  await writeFile(path.join(dir, 'policies.json'), policiesFile([testPolicy({ rules })]))
  await writeFile(path.join(dir, 'key'), 'key-of-google')
  const { gateway, issuer } = await started(t, {
    policyFile: path.join(dir, 'policies.json'),
    modelPolicy: 'policy',
    models: {
      plain: { upstream: openai.url },
      gemini: { provider: 'gemini', upstream, apiKeyFile: path.join(dir, 'key') },
    },
  })
  const token = issuer.token({ scope: 'models:plain models:gemini' })
  const { stdout } = await run(python.path, [here('gemini.py'), gateway.url, token])
  const { denied, ...texts } = JSON.parse(stdout)
  assert.deepEqual(texts, { whole: 'Hello', streamed: 'Hello', translated: 'Hello world.' })
  assert.deepEqual([denied.type, denied.status], ['ClientError', 403])
  assert.match(denied.message, /The call of plain\/large-1|The call of large-1/)
  assert.match(denied.message, /large models are for research\. Do not repeat this call as it is/)
})
