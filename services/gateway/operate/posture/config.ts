import { defineBlock, key, type RuleOf } from '@plat/config'
import { closest } from '@plat/core'
import Type from 'typebox'
import { checks } from './checks.ts'

const IDS = checks.map(({ id }) => id)

const schema = Type.Object({
  replicas: key.whole('Deployed replica count for the posture check; 0 is not known.', 0),
  accept: key.texts('Check ids accepted as risks.'),
})

/** A misspelled id would accept nothing. */
const idsAreKnown: RuleOf<typeof schema> = ({ accept = [] }) =>
  accept.flatMap((id, index) =>
    id === undefined || IDS.includes(id)
      ? []
      : [{ path: `posture.accept[${index}]`, message: unknown(id), severity: 'error' as const }],
  )

function unknown(id: string): string {
  const meant = closest(id, IDS)
  return meant === null ? 'no such check' : `no such check; did you mean ${meant}?`
}

/** `posture` (docs/spec/gateway.md): the posture check at startup and in `plat posture`. */
export const postureBlock = defineBlock({
  path: 'posture',
  feature: 'posture',
  schema,
  rules: [idsAreKnown],
})
