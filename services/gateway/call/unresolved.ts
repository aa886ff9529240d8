import type { Target } from './facts.ts'

/** The target before names are looked up: it trusts nothing. Metrics show its server; no upstream has its key. */
export const unresolved: Target = {
  kind: 'builtin',
  key: '',
  server: 'unknown',
  tool: null,
  trust: 'untrusted',
  dataClass: 'restricted',
  jurisdiction: null,
  labels: { taints: [], clearTaints: [], sinks: [] },
  builtin: false,
}
