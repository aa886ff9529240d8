import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { CallToolResultSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { startEverything } from '@plat/testkit/mcp/everything'
import { startShared } from '../testing/shared.ts'

const TOOL = 'simulate-research-query'

test('the SDK of version 1 runs a task of server-everything that asks its user, at both addresses', async (t) => {
  const everything = await startEverything()
  const gateway = await startShared(t, { everything: everything.url }, { shutdownTimeoutSeconds: 1 })
  t.after(() => everything.close())
  const requestInit = { headers: { authorization: `Bearer ${gateway.token()}` } }
  for (const [path, name] of [
    ['/everything', TOOL],
    ['', `everything__${TOOL}`],
  ] as const) {
    const client = new Client({ name: 'test', version: '1' }, { capabilities: { elicitation: {} } })
    const questions: string[] = []
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
      questions.push(params.message)
      return { action: 'accept', content: { interpretation: 'technical' } }
    })
    // The SDK's own types disagree about optional members; connecting by name keeps the rest checked.
    await Reflect.apply(client.connect, client, [
      new StreamableHTTPClientTransport(new URL(gateway.url + path), { requestInit }),
    ])
    await client.listTools()
    const params = { name, arguments: { topic: 'python', ambiguous: true } }
    const stream = client.experimental.tasks.callToolStream(params, CallToolResultSchema, { task: { ttl: 60_000 } })
    let taskId = ''
    let text = ''
    for await (const message of stream) {
      if (message.type === 'taskCreated') taskId = message.task.taskId
      if (message.type === 'result') text = JSON.stringify(message.result)
      if (message.type === 'error') assert.fail(`${path}: ${message.error.message}`)
    }
    assert.match(text, /Research Report: python/, path)
    assert.equal(questions.length, 1, path)
    const { tasks } = await client.experimental.tasks.listTasks()
    assert.deepEqual(
      tasks.map((task) => [task.taskId, task.status]),
      [[taskId, 'completed']],
      path,
    )
    await client.close()
  }
})
