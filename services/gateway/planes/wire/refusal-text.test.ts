import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deny, type ErrorCode, errorTable } from '../../call/index.ts'
import { type Progress, TEXT_MAX_CHARS, textOf } from './refusal-text.ts'

const NOW = Date.UTC(2026, 10, 23, 12)
const DECISION = '0198c2f4-7a51-7c3e-9d1f-3b2a1c0d9e8f'
const codes = Object.keys(errorTable).filter((code): code is ErrorCode => code in errorTable)

function resultText(code: ErrorCode, more: Partial<Parameters<typeof textOf>[0]> = {}): string {
  const denial = deny(code, `${code} happened`)
  return textOf({
    subject: { kind: 'tool', name: 'delete_note' },
    denial,
    decisionId: DECISION,
    progress: 'unsent',
    now: NOW,
    ...more,
  })
}

test('the text of each code names tool, reason and decision, and whether to repeat the call, in 300 characters', () => {
  const longest = {
    subject: { kind: 'tool', name: 't'.repeat(500) } as const,
    denial: deny('internal', 'r'.repeat(5_000), { retryAfterMs: 86_400_000 }),
  }
  for (const code of codes) {
    const text = resultText(code)
    assert.match(text, new RegExp(`^delete_note was not run: ${code} happened\\.`), code)
    assert.match(text, /repeat|list|again|Send less|call less|Correct|would help|before you do/i, code)
    assert.ok(text.endsWith(` Decision ${DECISION}.`), code)
    for (const progress of ['unsent', 'builtin', 'upstream'] satisfies Progress[]) {
      const long = resultText(code, { ...longest, denial: { ...longest.denial, code }, progress })
      assert.ok(long.length <= TEXT_MAX_CHARS.tool, `${code}: ${long.length}`)
      assert.match(long, /r{20,}…/, code)
      assert.ok(long.endsWith(` Decision ${DECISION}.`), code)
    }
  }
})

test('a wait is given in seconds, and a long one as a time', () => {
  const of = (retryAfterMs: number | null) =>
    resultText('rate_limited', { denial: deny('rate_limited', 'used up', { retryAfterMs }) })
  assert.match(of(41_200), / Repeat the call in 42 s\. Decision /)
  assert.match(of(7_200_000), / Repeat the call after 2026-11-23T14:00:00Z\. Decision /)
  assert.match(of(null), / Do not repeat this call now\. Decision /)
})

test('a withheld result and a failed call say that the tool has or may have run', () => {
  assert.match(
    resultText('dlp_denied', { progress: 'upstream' }),
    /^The result of delete_note is withheld: .* It has run\./,
  )
  assert.match(
    resultText('upstream_error', { progress: 'upstream' }),
    /^delete_note failed: .* It may have run: check that first\./,
  )
  assert.match(
    resultText('policy_denied', { progress: 'upstream' }),
    /^delete_note failed: .* It may have run: check that first\./,
  )
  assert.match(resultText('policy_denied', { progress: 'builtin' }), /^delete_note was not run: /)
  const denial = deny('upstream_error', 'notes cannot be reached', { unsent: true })
  assert.match(resultText('upstream_error', { progress: 'upstream', denial }), /^delete_note was not run: /)
  assert.match(resultText('upstream_credential', { progress: 'upstream' }), /^delete_note was not run: /)
})

test('a pending approval is named with the next step, and a missing account with the address to connect it', () => {
  const waiting = deny('approval_pending', 'waiting for approval a-1; repeat this call to learn the outcome', {
    retryAfterMs: 5_000,
  })
  assert.match(
    resultText('approval_pending', { denial: waiting }),
    /: waiting for approval a-1; repeat this call to learn the outcome\./,
  )
  const connectURL = 'https://gateway.example/connect/github'
  const account = deny('upstream_credential', 'no account', { data: { connectURL } })
  assert.match(
    resultText('upstream_credential', { denial: account }),
    /connect an account at https:\/\/gateway\.example\/connect\/github;/,
  )
})

test('line breaks and control characters of names and reasons become spaces', () => {
  const denial = deny('policy_denied', 'first\nsecond\u0007third')
  assert.match(
    resultText('policy_denied', { subject: { kind: 'tool', name: 'a\r\nb' }, denial }),
    /^a b was not run: first second third\./,
  )
})

test('the text about a model says whether its call was refused, failed, or has a response that is withheld', () => {
  const of = (code: ErrorCode, progress: Progress, name: string | null = 'gpt-5') =>
    resultText(code, { subject: { kind: 'model', name }, progress })
  assert.match(of('policy_denied', 'unsent'), /^The call of gpt-5 was refused: policy_denied happened\. Do not repeat/)
  assert.match(of('unauthenticated', 'unsent', null), /^The model call was refused: /)
  assert.match(of('upstream_error', 'upstream'), /^The call of gpt-5 failed: .* You may repeat the call once\. /)
  assert.match(of('dlp_denied', 'upstream'), /^The call of gpt-5 has a response that is withheld: /)
})
