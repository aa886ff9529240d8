import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AdminError } from './error.ts'
import { type Authentication, type Principal, principalOf, tokenPrincipal } from './roles.ts'
import { demandStepUp, type StepUpRule } from './step-up.ts'

const NOW_SECONDS = 1_000_000
const NONE: StepUpRule = { acr: [], amr: [], maxAgeSeconds: 0 }
const GRANTS = { roles: {}, namespaceRoles: {}, people: {} }

function loggedIn(auth?: Authentication): Principal {
  return principalOf({ user: 'ada', groups: [], ...(auth && { auth }) }, GRANTS)
}

/** Returns what a refusal requests of the next login; null: there is no refusal. */
function refusal(rule: StepUpRule, principal: Principal): object | null {
  try {
    demandStepUp(rule, principal, NOW_SECONDS * 1000)
    return null
  } catch (error) {
    assert.ok(error instanceof AdminError)
    assert.deepEqual([error.code, error.status], ['step_up_required', 403])
    return error.details
  }
}

test('a login satisfies a rule by its acr, its methods and its age, all that are set', () => {
  const rule = { acr: ['mfa', 'phr'], amr: ['hwk', 'otp'], maxAgeSeconds: 300 }
  const good = { acr: 'phr', amr: ['pwd', 'otp'], at: NOW_SECONDS - 300 }
  assert.equal(refusal(rule, loggedIn(good)), null)
  const wanted = { acr: 'mfa phr', maxAge: 300 }
  for (const wrong of [
    { acr: 'pwd' },
    { acr: null },
    { amr: ['pwd'] },
    { amr: [] },
    { at: null },
    { at: NOW_SECONDS - 306 },
    { at: NOW_SECONDS + 3600 },
  ])
    assert.deepEqual(refusal(rule, loggedIn({ ...good, ...wrong })), wanted, JSON.stringify(wrong))
  assert.deepEqual(refusal(rule, loggedIn()), wanted, 'a token that does not say how its person logged in')
})

test('the refusal requests what a new login must bring', () => {
  const person = loggedIn({ acr: 'pwd', amr: ['pwd'], at: NOW_SECONDS })
  assert.deepEqual(refusal({ ...NONE, acr: ['mfa'] }, person), { acr: 'mfa', maxAge: null })
  assert.deepEqual(refusal({ ...NONE, amr: ['hwk'] }, person), { acr: '', maxAge: 0 })
  assert.equal(refusal(NONE, person), null)
})

test('the static token needs no login', () => {
  assert.equal(refusal({ ...NONE, maxAgeSeconds: 1 }, tokenPrincipal({})), null)
})
