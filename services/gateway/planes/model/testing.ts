import type { ModelEndpoint } from './endpoint.ts'
import type { Circuits } from './forward.ts'

/** An endpoint that takes no key and is asked for whatever the caller asked for. */
export function endpointAt(upstream: string): ModelEndpoint {
  return {
    key: upstream,
    label: upstream,
    route: 'r',
    provider: 'openai',
    upstream,
    apiKeyFile: null,
    jurisdiction: null,
    modelFor: (asked) => asked,
  }
}

/** Circuits that never open. */
export const alwaysClosed: Circuits = { isOpen: () => false, enter() {}, succeeded() {}, failed() {} }
