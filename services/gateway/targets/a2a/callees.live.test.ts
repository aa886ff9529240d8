import assert from 'node:assert/strict'
import path from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { wholeLines } from '@plat/testkit/ledger'
import { until } from '@plat/testkit/until'
import { type CalleeFixture, calleeFixture, type Name, rpc, saying } from './testing/callees.ts'

const HELPER = '/a2a/default/helper'

let fixture: CalleeFixture
let auditPath: string
let sessions = 0

before(async () => {
  fixture = await calleeFixture((dir) => {
    auditPath = path.join(dir, 'audit.jsonl')
    return {}
  })
  await fixture.start()
})

after(() => fixture.close())

/** A session of the calling agent that no other test uses. */
const caller = (): Name => `assistant/a${++sessions}`
/** One of the called agent. */
const callee = (): Name => `helper/h${++sessions}`

/** The text of a message on which the agent does this before it responds. */
function message(work: () => Promise<unknown>, prefix = 'work'): string {
  const text = `${prefix} ${++sessions}`
  fixture.works.set(text, work)
  return text
}

const send = (name: Name, text: string, own: object = {}, method = 'SendMessage') =>
  fixture.post(fixture.token(name), HELPER, rpc(method, saying(text, own)))
const isLabelled = (name: Name) => fixture.isLabelled(fixture.token(name))
const taskIn = (text: string): { readonly id: string; readonly contextId: string } => JSON.parse(text).result.task

/** The agent calls for these without reading anything, so that its sessions that act for others alone do not count. */
const actFor = (...names: readonly Name[]) =>
  Promise.all(names.map((name) => fixture.isLabelled(fixture.token('helper/clean', [name]))))

/** The agent reads foreign content in a session that acts for the caller. */
const reading = (session: Name, delegators: readonly Name[]) => () => fixture.read(fixture.token(session, delegators))

test('a message of an agent brings the labels that its session got while it worked', async () => {
  const one = caller()
  const text = message(reading(callee(), [one]), 'hello')
  assert.equal(await isLabelled(one), false)
  assert.match(await send(one, text), /hello yourself/)
  assert.equal(await isLabelled(one), true)
  const outcome = () =>
    wholeLines(auditPath)
      .map((line) => JSON.parse(line).rec)
      .find((rec) => rec.kind === 'outcome' && rec.op === 'a2a.send' && one.endsWith(`/${rec.session}`))
  await until(() => outcome() !== undefined, 'the outcome')
  assert.deepEqual(outcome()?.taintsAdded, ['untrusted-input'])
})

test('labels come back where the agent calls with its own token, from a task, and to a caller that is delegated itself', async () => {
  const one = caller()
  // Each session of this agent may have responded, since it says for no call whom it acts for.
  const own = message(() => fixture.read(fixture.token('other/own')))
  await fixture.post(fixture.token(one), '/a2a/default/other', rpc('SendMessage', saying(own)))
  assert.equal(await isLabelled(one), true)
  const [user, middle] = [caller(), caller()]
  const session = callee()
  const text = message(reading(session, [middle, user]))
  await fixture.post(fixture.token(middle, [user]), HELPER, rpc('SendMessage', saying(text)))
  assert.equal(await isLabelled(middle), true)
})

test('labels of a session that the agent delegated to come back through it', async () => {
  const one = caller()
  const session = callee()
  await send(one, message(reading('deep/d1', [session, one])))
  assert.equal(await isLabelled(one), true)
})

test('labels that the token of the agent brings come back, such as those of a fork', async () => {
  const one = caller()
  const forked = { plat_parent_session: 'p', plat_fork_root: 'p', plat_inherited_taints: 'untrusted-input' }
  const token = fixture.token(callee(), [one], forked)
  // It reads nothing foreign itself.
  await send(
    one,
    message(() => fixture.isLabelled(token)),
  )
  assert.equal(await isLabelled(one), true)
})

test('a stream labels its caller at the first event after the agent has read', async () => {
  const one = caller()
  await actFor(one)
  const gate = Promise.withResolvers<void>()
  const work = reading(callee(), [one])
  const text = message(async () => {
    await gate.promise
    await work()
  })
  const response = await fetch(`${fixture.gateways[0]?.url}${HELPER}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${fixture.token(one)}`,
      'content-type': 'application/json',
      'a2a-version': '1.0',
    },
    body: JSON.stringify(rpc('SendStreamingMessage', saying(text))),
  })
  const events = response.body?.pipeThrough(new TextDecoderStream()).getReader() ?? assert.fail('no stream')
  assert.match((await events.read()).value ?? '', /TASK_STATE/)
  assert.equal(await isLabelled(one), false)
  gate.resolve()
  let more = ''
  while (!more.includes('artifactUpdate')) more += (await events.read()).value ?? assert.fail('the stream ended')
  assert.equal(await isLabelled(one), true)
  await events.cancel()
})

test('whoever reads a task later gets the labels of the sessions that worked on it, by each method', async () => {
  const began = caller()
  await actFor(began)
  const gate = Promise.withResolvers<void>()
  const work = reading(callee(), [began])
  const text = message(async () => {
    await gate.promise
    await work()
  })
  const configuration = { acceptedOutputModes: [], returnImmediately: true }
  const params = saying(text, {}, { configuration })
  const { id } = taskIn(await fixture.post(fixture.token(began), HELPER, rpc('SendMessage', params)))
  assert.equal(await isLabelled(began), false)
  const methods = { GetTask: { id }, SubscribeToTask: { id }, ListTasks: {} }
  const readers = Object.entries(methods).map(([method, one]) => ({ method, one, name: caller() }))
  await actFor(...readers.map(({ name }) => name))
  const poll = (name: Name, method: string, params: object) =>
    fixture.post(fixture.token(name), HELPER, rpc(method, params))
  const [subscribed] = readers.filter(({ method }) => method === 'SubscribeToTask')
  const following = subscribed && poll(subscribed.name, subscribed.method, subscribed.one)
  gate.resolve()
  await until(async () => (await poll(began, 'GetTask', { id })).includes('COMPLETED'), 'the end of the task')
  assert.equal(await isLabelled(began), true)
  await following
  for (const { method, one, name } of readers) {
    if (method !== 'SubscribeToTask') await poll(name, method, one)
    assert.equal(await isLabelled(name), true, method)
  }
})

test('a session that goes on with a task has it bring the labels of what the agent does for that session', async () => {
  const [began, wentOn, reader] = [caller(), caller(), caller()]
  await actFor(began, wentOn, reader)
  const { id, contextId } = taskIn(
    await send(
      began,
      message(async () => {}),
    ),
  )
  // The response is lost: the caller leaves before it comes.
  const gate = Promise.withResolvers<void>()
  const work = reading(callee(), [wentOn])
  const done = Promise.withResolvers<void>()
  const text = message(async () => {
    gate.resolve()
    await work()
    done.resolve()
  })
  const leaving = new AbortController()
  const headers = { authorization: `Bearer ${fixture.token(wentOn)}`, 'content-type': 'application/json' }
  const sent = fetch(`${fixture.gateways[0]?.url}${HELPER}`, {
    method: 'POST',
    headers: { ...headers, 'a2a-version': '1.0' },
    body: JSON.stringify(rpc('SendMessage', saying(text, { contextId }))),
    signal: leaving.signal,
  })
  await gate.promise
  leaving.abort()
  await assert.rejects(sent)
  await done.promise
  const next = await send(
    reader,
    message(async () => {}),
    { contextId },
  )
  assert.match(next, /TASK_STATE/)
  assert.equal(await isLabelled(reader), true)
  assert.notEqual(taskIn(next).id, id)
})

/** Another gateway, whose agents have read nothing. */
async function apart(t: TestContext): Promise<CalleeFixture> {
  const other = await calleeFixture()
  t.after(() => other.close())
  await other.start()
  return other
}

test('a session of the agent that acts for another caller alone, and one of another agent, label nothing', async (t) => {
  const clean = await apart(t)
  await clean.read(clean.token('helper/h1', ['assistant/other']))
  await clean.read(clean.token('other/o1'))
  const one = clean.token('assistant/one')
  clean.works.set('hello there', () => clean.isLabelled(clean.token('helper/h2', ['assistant/one'])))
  assert.match(await clean.post(one, HELPER, rpc('SendMessage', saying('hello there'))), /hello yourself/)
  assert.equal(await clean.isLabelled(one), false)
  // Where no session of the agent acts for the caller, any of them may have written the response.
  const unknown = clean.token('assistant/unknown')
  await clean.post(unknown, HELPER, rpc('SendMessage', saying('hello')))
  assert.equal(await clean.isLabelled(unknown), true)
})

test('a session that has a webhook called gets the labels of the agent without any further response', async (t) => {
  const clean = await apart(t)
  const one = clean.token('assistant/one')
  const gate = Promise.withResolvers<void>()
  const done = Promise.withResolvers<void>()
  clean.works.set('work', async () => {
    await gate.promise
    await clean.read(clean.token('helper/h1', ['assistant/one']))
    done.resolve()
  })
  const taskPushNotificationConfig = { url: 'https://hooks.example.com/a' }
  const configuration = { acceptedOutputModes: [], returnImmediately: true, taskPushNotificationConfig }
  const sent = await clean.post(one, HELPER, rpc('SendMessage', saying('work', {}, { configuration })))
  assert.match(sent, /TASK_STATE/)
  assert.equal(await clean.isLabelled(one), false)
  gate.resolve()
  await done.promise
  assert.equal(await clean.isLabelled(one), true)
})

test('a gateway that is killed still knows whose labels a task brings, and who has a webhook called', async (t) => {
  const killed = await apart(t)
  const [one, reader] = [killed.token('assistant/one'), killed.token('assistant/reader')]
  killed.works.set('work', () => killed.read(killed.token('helper/h1', ['assistant/one'])))
  // A session of the agent acts for the reader too, so that the task alone leads to the one that has read.
  await killed.isLabelled(killed.token('helper/h2', ['assistant/reader']))
  const { id } = taskIn(await killed.post(one, HELPER, rpc('SendMessage', saying('work'))))
  const url = 'https://hooks.example.com/a'
  const hooked = killed.token('assistant/hooked')
  await killed.post(hooked, HELPER, rpc('CreateTaskPushNotificationConfig', { taskId: id, url }))
  await killed.gateways[0]?.kill()
  const gateway = await killed.start()
  const isLabelled = (token: string) => killed.isLabelled(token, gateway)
  assert.deepEqual([await isLabelled(one), await isLabelled(hooked), await isLabelled(reader)], [true, true, false])
  await killed.post(reader, HELPER, rpc('GetTask', { id }), gateway)
  assert.equal(await isLabelled(reader), true)
})
