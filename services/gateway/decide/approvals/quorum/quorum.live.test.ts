import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { gatewayWith } from '../../../testing/approvals.ts'
import { AUDIENCE, provider } from '../../../testing/people.ts'

/** A gateway whose approvers log in at an identity provider that names them by other names than sessions do. */
async function setUp(t: TestContext, approvalQuorum: object = {}) {
  const people = await provider(t)
  const { issuer } = people.state
  const adminAuth = {
    mode: 'both',
    devTokenApprovers: true,
    roles: { approver: ['deciders'] },
    people: {
      uma: { issuer, subject: '00u-uma', aliases: ['uma@example.com'] },
      ada: { issuer, subject: '00u-ada', aliases: ['ada.l'] },
      bob: { issuer, subject: '00u-bob' },
    },
    oidc: { issuer, audience: AUDIENCE },
  }
  const gateway = await gatewayWith(t, { adminAuth, approvalQuorum })
  /** Approves, or denies, as a person of the provider. Returns the status and the state of the approval. */
  const vote = async (id: string, claims: object, verdict = 'approve') => {
    const response = await fetch(`${gateway.url}/v1/approvals/${id}/${verdict}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${await people.token({ groups: ['deciders'], ...claims })}`,
        'content-type': 'application/json',
      },
      body: '{}',
    })
    const body = JSON.parse(await response.text())
    return `${response.status} ${body.state ?? body.error}`
  }
  return { gateway, vote }
}

const called = (subject: string, name: string) => ({ sub: subject, preferred_username: name })

test('the user of a session cannot approve its call with a login that has another name', async (t) => {
  const { gateway, vote } = await setUp(t)
  const { id, answer } = await gateway.hold('secret', 'uma')
  for (const login of [
    called('00u-uma', 'u.mayer'),
    called('00u-other', 'UMA'),
    called('00u-other', 'uma@example.com'),
    called('00u-other', 'ｕｍａ'),
  ])
    assert.equal(await vote(id, login), '403 forbidden', JSON.stringify(login))
  assert.equal((await gateway.admin('GET', `/v1/approvals/${id}`)).body.state, 'pending')
  assert.equal(await vote(id, called('00u-ada', 'a.lovelace')), '200 approved')
  assert.match(await answer, /deleted/)
  const other = await gateway.hold('other', 'uma@example.com')
  assert.equal(await vote(other.id, called('00u-uma', 'u.mayer')), '403 forbidden', 'the session has an alias')
  assert.equal(await vote(other.id, called('00u-uma', 'u.mayer'), 'deny'), '200 denied')
  await other.answer
})

test('a person with two logins counts once in a quorum of two', async (t) => {
  const { gateway, vote } = await setUp(t, { default: { minApprovers: 2, approverGroups: ['deciders'] } })
  const { id, answer } = await gateway.hold('secret', 'uma')
  assert.equal(await vote(id, called('00u-ada', 'a.lovelace')), '200 pending')
  assert.equal(await vote(id, called('00u-elsewhere', 'ada.l')), '409 conflict')
  assert.equal(await vote(id, called('00u-elsewhere', 'ADA')), '409 conflict')
  assert.equal(await vote(id, called('00u-bob', 'bob')), '200 approved')
  assert.match(await answer, /deleted/)
})

test('an approver whose next login lacks the group does not count when the call is released again', async (t) => {
  const { gateway, vote } = await setUp(t, { default: { minApprovers: 2, approverGroups: ['leads'] } })
  const leads = { groups: ['deciders', 'leads'] }
  const first = await gateway.hold('one', 'uma')
  const second = await gateway.hold('two', 'uma')
  assert.equal(await vote(first.id, { ...called('00u-ada', 'ada'), ...leads }), '200 pending')
  // The provider took the group from her meanwhile: her next ballot is refused, and the one before no longer counts.
  assert.equal(await vote(second.id, called('00u-ada', 'ada')), '403 forbidden')
  assert.equal(await vote(first.id, { ...called('00u-bob', 'bob'), ...leads }), '200 approved')
  assert.match(await first.answer, /approval_stale/)
  await gateway.admin('POST', `/v1/approvals/${second.id}/deny`, {})
  assert.match(await second.answer, /approval_denied/)
})
