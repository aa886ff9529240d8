import { parseChecked } from '@plat/core'
import { type Call, isDenial } from '../../call/index.ts'
import { admitted, type Stage, stage } from '../../pipeline/stage.ts'
import type { GuardTarget } from './config.ts'
import type { Guards } from './guards.ts'
import { textOf } from './texts.ts'

/** Labels caused by a call's request, until its response records them. Empty for nearly all calls. */
export type GuardLabels = WeakMap<object, readonly string[]>

/** Classifies the request of a call before it is sent: tool arguments and prompts. */
export function createGuardStage(
  guards: Guards,
  brought: GuardLabels,
): Stage<'guard', 'identity' | 'target' | 'redacted', never> {
  return stage({
    name: 'guard',
    needs: ['identity', 'target', 'redacted'],
    gives: [],
    skipped: {},
    admit(call) {
      if (guards.none) return admitted
      const target: GuardTarget = call.facts.target.kind === 'model' ? 'llmPrompt' : 'toolArgs'
      const reading = guards.of(call, target)
      const text = reading.length === 0 ? '' : textSent(call)
      if (text === '') return admitted
      return guards.judge(call, reading, { text, target }).then((judged) => {
        if (isDenial(judged)) return judged
        if (judged.length > 0) brought.set(call, judged)
        return admitted
      })
    },
  })
}

/** Text of the request without redacted data, since a classifier is a third party. */
function textSent({ body, facts: { redacted } }: Call<'redacted'>): string {
  if (redacted !== null) return textOf([parsed(redacted.text), body?.beside])
  if (body === null) return ''
  if (body.args === null) return textOf(body.value)
  return textOf([body.argsValue ?? parsed(Buffer.from(body.args).toString('utf8')), body.beside])
}

function parsed(json: string): unknown {
  return json === '' ? null : parseChecked(json)
}
