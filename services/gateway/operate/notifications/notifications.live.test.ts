import assert from 'node:assert/strict'
import { createHmac, randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Log } from '@plat/process'
import { tempFolder } from '@plat/testkit/local'
import OpenAI from 'openai'
import { gatewayWith, type ReceivedMessage, receiver } from '../../testing/approvals.ts'

async function file(text: string): Promise<string> {
  const path = join(tempFolder(), 'secret')
  await writeFile(path, text)
  return path
}

const typeOf = ({ body }: ReceivedMessage): unknown => JSON.parse(body).type
const is = (type: string) => (message: ReceivedMessage) => typeOf(message) === type

test('a webhook is notified of an approval from beginning to end, with signatures that another library verifies', async (t) => {
  // Shows D3.approvals.notifiers, D3.approvals.consoleURL, D3.notifiers.name, D3.notifiers.type.webhook, D3.notifiers.url,
  // D3.notifiers.hmacSecretFile, D3.event.notifiersTold.
  const hook = await receiver(t)
  const secret = `whsec_${randomBytes(32).toString('base64')}`
  const notifiers = [
    { name: 'hook', type: 'webhook', url: `${hook.url}/plat`, hmacSecretFile: await file(`${secret}\n`) },
  ]
  const { hold, admin } = await gatewayWith(t, { notifiers, consoleURL: 'https://console.example/' })
  const { id, answer } = await hold('ada@example.com')
  const created = await hook.first(is('approval.created'))
  const library = new OpenAI({ apiKey: 'none', webhookSecret: secret })
  const headers = { ...created.headers } as const
  await library.webhooks.verifySignature(created.body, headers)
  await assert.rejects(library.webhooks.verifySignature(`${created.body} `, headers))
  assert.deepEqual([created.method, created.path], ['POST', '/plat'])
  assert.equal(created.headers['webhook-id'], `${id}.approval.created`)
  const { data, link } = JSON.parse(created.body)
  assert.equal(link, `https://console.example/approvals/${id}`)
  assert.deepEqual(
    [data.id, data.agent, data.server, data.tool, data.user],
    [id, 'assistant', 'notes', 'delete', 'uma'],
  )
  assert.ok(!created.body.includes('ada@example.com'), 'detected data is sent in mode full only')
  assert.deepEqual(data.preview.truncated, false)
  assert.match(data.preview.text, /^\{"name":"\[.*\]"\}$/)
  await admin('POST', `/v1/approvals/${id}/approve`, { reason: 'fine' })
  assert.match(await answer, /deleted/)
  const approved = JSON.parse((await hook.first(is('approval.approved'))).body)
  assert.deepEqual([approved.data.quorum.votes[0].by, approved.data.quorum.votes[0].reason], ['token:admin', 'fine'])
})

test('each notifier gets the events that it selects; full previews are sent only where configured', async (t) => {
  // Shows D3.notifiers.events.
  const [all, some] = [await receiver(t), await receiver(t)]
  const notifiers = [
    { name: 'all', type: 'webhook', url: all.url },
    { name: 'some', type: 'webhook', url: some.url, events: ['approval.denied', 'revocation.created'] },
  ]
  const { hold, admin } = await gatewayWith(t, { notifiers, approvalPreview: { mode: 'full' } })
  const { id, answer } = await hold('the-name')
  assert.match((await all.first(is('approval.created'))).body, /the-name/)
  await admin('POST', `/v1/approvals/${id}/deny`, { reason: 'no' })
  assert.match(await answer, /approval_denied/)
  const other = await hold('b')
  await admin('POST', '/v1/revocations', { target: { agent: 'default/assistant' }, mode: 'revoke', reason: 'gone' })
  assert.match(await other.answer, /revoked|approval_stale/)
  await all.first(is('approval.cancelled'))
  const { body } = await some.first(is('revocation.created'))
  assert.partialDeepStrictEqual(JSON.parse(body).data, {
    target: 'default/assistant',
    reason: 'gone',
    by: 'token:admin',
  })
  await some.first(is('approval.denied'))
  assert.deepEqual(some.received.map(typeOf).toSorted(), ['approval.denied', 'revocation.created'])
})

test('a receiver that never responds delays no other, and is notified once it responds; secrets are reloaded', async (t) => {
  const hook = await receiver(t)
  hook.answers(503, { 'retry-after': '1' })
  const hmacSecretFile = await file('old')
  const lines: string[] = []
  const { hold, admin } = await gatewayWith(
    t,
    { notifiers: [{ name: 'hook', type: 'webhook', url: hook.url, hmacSecretFile }] },
    logTo(lines),
  )
  const { id, answer } = await hold()
  await hook.first(is('approval.created'))
  await admin('POST', `/v1/approvals/${id}/approve`, {})
  assert.match(await answer, /deleted/)
  assert.ok(hook.received.every(is('approval.created')), 'the receiver is still away')
  await writeFile(hmacSecretFile, 'new')
  hook.answers(200)
  const { headers, body } = await hook.first(is('approval.approved'))
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`
  assert.equal(headers['webhook-signature'], `v1,${createHmac('sha256', 'new').update(signed).digest('base64')}`)
  assert.ok(lines.some((line) => line.includes('could not be delivered') && line.includes('503')))
})

test('Slack, Teams and Matrix get messages in their formats, with texts of agents as plain text', async (t) => {
  // Shows D3.notifiers.type.slack, D3.notifiers.type.teams, D3.notifiers.type.matrix, D3.notifiers.webhookURLFile,
  // D3.notifiers.homeserver, D3.notifiers.roomId, D3.notifiers.accessTokenFile.
  const chat = await receiver(t)
  const notifiers = [
    { name: 's', type: 'slack', webhookURLFile: await file(`${chat.url}/services/T/B/x\n`) },
    { name: 't', type: 'teams', webhookURLFile: await file(`${chat.url}/workflows/y`) },
    {
      name: 'm',
      type: 'matrix',
      homeserver: `${chat.url}/`,
      roomId: '!room/1:example.org',
      accessTokenFile: await file('syt_token'),
    },
  ]
  const { hold } = await gatewayWith(t, { notifiers, consoleURL: 'https://console.example' })
  const { id } = await hold()
  const slack = JSON.parse((await chat.first(({ path }) => path === '/services/T/B/x')).body)
  const types = slack.blocks.map((block: { type: string }) => block.type)
  assert.deepEqual(types, ['header', 'section', 'section', 'actions', 'context'])
  assert.equal(slack.blocks[0].text.type, 'plain_text')
  assert.deepEqual(
    slack.blocks[3].elements.map((one: { action_id: string }) => one.action_id),
    ['plat_open'],
    'no buttons without signingSecretFile',
  )
  const teams = JSON.parse((await chat.first(({ path }) => path === '/workflows/y')).body)
  const card = teams.attachments[0].content
  assert.deepEqual([teams.type, card.type], ['message', 'AdaptiveCard'])
  assert.ok(card.body.every((one: { type: string }) => one.type === 'RichTextBlock'))
  assert.equal(card.actions[0].url, `https://console.example/approvals/${id}`)
  const matrix = await chat.first(({ method }) => method === 'PUT')
  const sent = `/_matrix/client/v3/rooms/!room%2F1%3Aexample.org/send/m.room.message/${id}.approval.created`
  assert.deepEqual([matrix.path, matrix.headers.authorization], [sent, 'Bearer syt_token'])
  const { msgtype, body } = JSON.parse(matrix.body)
  assert.equal(msgtype, 'm.notice')
  assert.match(body, /^Approval needed: default\/assistant wants notes\/delete\n/)
})

function logTo(lines: string[]): Log {
  const add = (fields: object, message: string) => void lines.push(`${message} ${JSON.stringify(fields)}`)
  const log: Log = { debug: add, info: add, warn: add, error: add, child: () => log }
  return log
}
