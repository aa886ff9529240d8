import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createServer } from 'node:http'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { wholeLines } from '@plat/testkit/ledger'
import { closed, listening } from '@plat/testkit/local'
import { pythonWith } from '@plat/testkit/processes/python'
import { type Plat, start } from '../plat.ts'

const run = promisify(execFile)

const python = await pythonWith(path.join(import.meta.dirname, 'requirements.txt'))
const skip = 'missing' in python ? python.missing : false

/** Next step of the model after a result of a tool: another call of the tool, or this text at the end. */
type Step = 'repeat' | { readonly text: string }

/** A model that deletes a note, and then does what `next` says about each result. */
async function scriptedModel(t: TestContext, note: string, next: (result: string) => Promise<Step>): Promise<string> {
  let calls = 0
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { messages } = JSON.parse(Buffer.concat(chunks).toString('utf8'))
    const last = messages.at(-1)
    const step = last.role === 'tool' ? await next(textOf(last.content)) : 'repeat'
    const call = { name: 'delete_note', arguments: JSON.stringify({ name: note }) }
    const message =
      step === 'repeat'
        ? { role: 'assistant', content: null, tool_calls: [{ id: `c${++calls}`, type: 'function', function: call }] }
        : { role: 'assistant', content: step.text }
    const choice = { index: 0, message, finish_reason: step === 'repeat' ? 'tool_calls' : 'stop' }
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ id: 'x', object: 'chat.completion', created: 1, model: 'm', choices: [choice], usage }))
  })
  const port = await listening(server)
  t.after(() => closed(server))
  return `http://127.0.0.1:${port}/v1`
}

function textOf(content: unknown): string {
  return typeof content === 'string' ? content : JSON.stringify(content)
}

/** Runs an agent with this model, and returns what it prints. */
async function runAgent(plat: Plat, program: string, modelURL: string): Promise<string> {
  const session = await plat.session()
  const env = {
    PATH: process.env.PATH,
    TOKEN: await session.token(),
    MCP_URL: `${plat.env.PLAT_GATEWAY_URL}/mcp/notes`,
    OPENAI_BASE_URL: modelURL,
    OPENAI_API_KEY: 'none',
    TASK: 'Delete the note.',
  }
  session.close()
  assert.ok('path' in python)
  const { stdout } = await run(python.path, [path.join(import.meta.dirname, program)], { env })
  return stdout
}

/** Results of the calls of `delete_note` that reached the server. */
function executed(plat: Plat): string[] {
  return wholeLines(path.join(plat.dir, '.plat/state/audit.jsonl'))
    .map((line) => JSON.parse(line).rec)
    .filter((rec) => rec.kind === 'outcome' && rec.tool === 'delete_note')
    .map((rec) => rec.result)
}

async function addNote(plat: Plat, name: string): Promise<void> {
  const session = await plat.session()
  await plat.call(session, 'add_note', { name, text: 'x' })
  session.close()
}

const RULES = `
    - { name: notes, action: allow, match: { servers: [notes], tools: [add_note] } }
    - { name: keep, action: deny, match: { tools: [delete_note] }, when: "args.name.startsWith('keep')", reason: notes to keep stay }
    - { name: delete, action: require_approval, match: { tools: [delete_note] }, reason: somebody looks first }`

for (const program of ['openai_agents.py', 'langgraph_agent.py']) {
  test(`${program}: the model reads why a call is denied, and the agent goes on`, { skip }, async (t) => {
    await using plat = await start({ rules: RULES })
    const model = await scriptedModel(t, 'keep-this', async (result) => ({ text: `I read: ${result}` }))
    const printed = await runAgent(plat, program, model)
    assert.match(
      printed,
      /I read: .*delete_note was not run: notes to keep stay\. Do not repeat this call.* Decision [0-9a-f-]{36}\./,
    )
    assert.deepEqual(executed(plat), [])
  })

  test(`${program}: a call that waits for an approval is answered in time, and runs once when the model repeats it`, {
    skip,
  }, async (t) => {
    await using plat = await start({ rules: RULES })
    await addNote(plat, 'draft')
    const waited: string[] = []
    const model = await scriptedModel(t, 'draft', async (result) => {
      const id = /waiting for approval ([0-9a-f-]{36}); repeat this call to learn the outcome/.exec(result)?.[1]
      if (id === undefined) return { text: `I read: ${result}` }
      waited.push(id)
      assert.deepEqual(executed(plat), [], 'nothing runs before the call is repeated')
      if (waited.length === 2) await plat.command('approvals', 'approve', id, '-reason', 'fine')
      return 'repeat'
    })
    const printed = await runAgent(plat, program, model)
    assert.match(printed, /I read: .*Deleted/)
    assert.equal(waited.length, 2)
    assert.equal(new Set(waited).size, 1)
    assert.deepEqual(executed(plat), ['completed'])
  })

  test(`${program}: the model learns that its call was denied by a person, and why`, { skip }, async (t) => {
    await using plat = await start({ rules: RULES })
    await addNote(plat, 'draft')
    const model = await scriptedModel(t, 'draft', async (result) => {
      const id = /waiting for approval ([0-9a-f-]{36});/.exec(result)?.[1]
      if (id === undefined) return { text: `I read: ${result}` }
      await plat.command('approvals', 'deny', id, '-reason', 'the draft is still needed')
      return 'repeat'
    })
    assert.match(await runAgent(plat, program, model), /I read: .*the draft is still needed/)
    assert.deepEqual(executed(plat), [])
  })
}
