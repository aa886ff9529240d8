import assert from 'node:assert/strict'
import path from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { wholeLines } from '@plat/testkit/ledger'
import { until } from '@plat/testkit/until'
import { type CalleeFixture, calleeFixture, messageParams, type Name, rpc } from './testing/callees.ts'

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

/** A new session of the calling agent. */
const caller = (): Name => `assistant/a${++sessions}`
/** A new session of the called agent. */
const callee = (): Name => `helper/h${++sessions}`

/** Text of a message for which the agent runs `work` before it responds. */
function message(work: () => Promise<unknown>, prefix = 'work'): string {
  const text = `${prefix} ${++sessions}`
  fixture.works.set(text, work)
  return text
}

const send = (name: Name, text: string, own: object = {}, method = 'SendMessage') =>
  fixture.post(fixture.token(name), HELPER, rpc(method, messageParams(text, own)))
const isLabelled = (name: Name) => fixture.isLabelled(fixture.token(name))
const taskIn = (text: string): { readonly id: string; readonly contextId: string } => JSON.parse(text).result.task

/** The agent makes calls for these sessions without reading foreign content, so that its sessions for others are ruled out. */
const actFor = (...names: readonly Name[]) =>
  Promise.all(names.map((name) => fixture.isLabelled(fixture.token('helper/clean', [name]))))

/** The agent reads foreign content in a session delegated by the caller. */
const reading = (session: Name, delegators: readonly Name[]) => () => fixture.read(fixture.token(session, delegators))

test('a response of an agent labels the caller with the labels that its session got while it worked', async () => {
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

test('labels are returned if the agent calls with its own token, from a task, and to a delegated caller', async () => {
  const one = caller()
  // Any session of this agent may have responded, since its calls name no delegator.
  const own = message(() => fixture.read(fixture.token('other/own')))
  await fixture.post(fixture.token(one), '/a2a/default/other', rpc('SendMessage', messageParams(own)))
  assert.equal(await isLabelled(one), true)
  const [user, middle] = [caller(), caller()]
  const session = callee()
  const text = message(reading(session, [middle, user]))
  await fixture.post(fixture.token(middle, [user]), HELPER, rpc('SendMessage', messageParams(text)))
  assert.equal(await isLabelled(middle), true)
})

test('labels of a session delegated by the agent are returned through it', async () => {
  const one = caller()
  const session = callee()
  await send(one, message(reading('deep/d1', [session, one])))
  assert.equal(await isLabelled(one), true)
})

test('labels in the token of the agent are returned, such as those of a fork', async () => {
  const one = caller()
  const forked = { plat_parent_session: 'p', plat_fork_root: 'p', plat_inherited_taints: 'untrusted-input' }
  const token = fixture.token(callee(), [one], forked)
  // It reads no foreign content itself.
  await send(
    one,
    message(() => fixture.isLabelled(token)),
  )
  assert.equal(await isLabelled(one), true)
})

test('a stream labels its caller at the first event after the called agent has read labelled data', async () => {
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
    body: JSON.stringify(rpc('SendStreamingMessage', messageParams(text))),
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

test('a session that reads a task later gets the labels of the sessions that worked on it, by each method', async () => {
  const began = caller()
  await actFor(began)
  const gate = Promise.withResolvers<void>()
  const work = reading(callee(), [began])
  const text = message(async () => {
    await gate.promise
    await work()
  })
  const configuration = { acceptedOutputModes: [], returnImmediately: true }
  const params = messageParams(text, {}, { configuration })
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

test('a task continued by a session returns the labels of work for that session', async () => {
  const [began, wentOn, reader] = [caller(), caller(), caller()]
  await actFor(began, wentOn, reader)
  const { id, contextId } = taskIn(
    await send(
      began,
      message(async () => {}),
    ),
  )
  // The caller disconnects before the response.
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
    body: JSON.stringify(rpc('SendMessage', messageParams(text, { contextId }))),
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

/** Another gateway, whose agents have read no foreign content. */
async function apart(t: TestContext): Promise<CalleeFixture> {
  const other = await calleeFixture()
  t.after(() => other.close())
  await other.start()
  return other
}

test('sessions of the agent that act only for other callers, and sessions of other agents, label nothing', async (t) => {
  const clean = await apart(t)
  await clean.read(clean.token('helper/h1', ['assistant/other']))
  await clean.read(clean.token('other/o1'))
  const one = clean.token('assistant/one')
  clean.works.set('hello there', () => clean.isLabelled(clean.token('helper/h2', ['assistant/one'])))
  assert.match(await clean.post(one, HELPER, rpc('SendMessage', messageParams('hello there'))), /hello yourself/)
  assert.equal(await clean.isLabelled(one), false)
  // If no session of the agent acts for the caller, any of them may have written the response.
  const unknown = clean.token('assistant/unknown')
  await clean.post(unknown, HELPER, rpc('SendMessage', messageParams('hello')))
  assert.equal(await clean.isLabelled(unknown), true)
})

test('a session that registers a webhook gets the labels of the agent without further responses', async (t) => {
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
  const sent = await clean.post(one, HELPER, rpc('SendMessage', messageParams('work', {}, { configuration })))
  assert.match(sent, /TASK_STATE/)
  assert.equal(await clean.isLabelled(one), false)
  gate.resolve()
  await done.promise
  assert.equal(await clean.isLabelled(one), true)
})

test('a killed gateway still knows the labels of a task, and the sessions with a webhook', async (t) => {
  const killed = await apart(t)
  const [one, reader] = [killed.token('assistant/one'), killed.token('assistant/reader')]
  killed.works.set('work', () => killed.read(killed.token('helper/h1', ['assistant/one'])))
  // A session of the agent acts for the reader too, so that only the task leads to the session that has read.
  await killed.isLabelled(killed.token('helper/h2', ['assistant/reader']))
  const { id } = taskIn(await killed.post(one, HELPER, rpc('SendMessage', messageParams('work'))))
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
