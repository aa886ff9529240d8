/** A rendered policy (policies.json) of agent `default/assistant` that allows every call; `own` says what is different. */
export function testPolicy(own: Readonly<Record<string, unknown>> = {}): Readonly<Record<string, unknown>> {
  return {
    name: 'default/all',
    namespace: 'default',
    agents: ['assistant'],
    mode: 'enforce',
    defaultAction: 'deny',
    cedar: '',
    rules: [{ name: 'all', action: 'allow' }],
    ...own,
  }
}

/** The text of a policies file with these policies, or with the one that allows every call. */
export function policiesFile(policies: readonly object[] = [testPolicy()], generation = 1): string {
  return JSON.stringify({ version: 1, generation, revision: `sha256:${generation}`, policies })
}
