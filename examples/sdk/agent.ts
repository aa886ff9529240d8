/**
 * An agent that handles refusals. With the quickstart running (`npm start`):
 *
 *     npx --no plat run assistant -- node examples/sdk/agent.ts
 *
 * Deleting requires an approval: decide with `npx --no plat approvals watch`.
 */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { ApprovalRefusedError, connect, deniedBy, ScopeMissingError, untilApproved } from '@plat/sdk'
import OpenAI from 'openai'

const session = await connect()

const openai = new OpenAI(session.openai())
const stream = await openai.chat.completions.create({
  model: 'scripted-1',
  messages: [{ role: 'user', content: 'hello' }],
  stream: true,
})
let text = ''
for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? ''
print('the model says', text)

const notes = await server('notes')
await notes.callTool({ name: 'add_note', arguments: { name: 'draft', text: 'Not needed.' } })
await remove('keep-draft')
await remove('draft')
await notes.close()

await server('calendar').catch((error: unknown) => {
  const denied = deniedBy(error)
  if (!(denied instanceof ScopeMissingError)) throw error
  print('no calendar', `the session has no scope ${denied.scopes.join(' ')}`)
})

/** A tool server. Calls that wait for an approver report that after a second. */
async function server(name: string): Promise<Client> {
  const client = new Client({ name: 'sdk-example', version: '1.0.0' })
  const { url, ...options } = session.mcp(name, { approvalWaitSeconds: 1 })
  await client.connect(new StreamableHTTPClientTransport(url, options))
  return client
}

/** Deletes a note if policy and people let it; goes on where they do not. */
async function remove(name: string): Promise<void> {
  let isReported = false
  const asking = (approvalId: string | null) => {
    if (!isReported) print(`deletes ${name}`, `waits for approval ${approvalId}`)
    isReported = true
  }
  try {
    await untilApproved(() => notes.callTool({ name: 'delete_note', arguments: { name } }), {
      onPending: ({ approvalId }) => asking(approvalId),
    })
    print(`deletes ${name}`, 'done')
  } catch (error) {
    const denied = deniedBy(error)
    if (denied === null) throw error
    const why = denied instanceof ApprovalRefusedError ? 'a person said no' : `rule ${denied.rule}`
    print(`deletes ${name}`, `refused (${denied.code}): ${why}`)
  }
}

function print(what: string, result: string): void {
  console.log(`${what}: ${result}`)
}
