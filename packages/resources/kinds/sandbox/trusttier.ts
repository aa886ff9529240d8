import { type Static, Type } from 'typebox'
import { mapOf } from '../../check.ts'
import {
  closed,
  conditions,
  count,
  duration,
  flag,
  jurisdiction,
  label,
  longCount,
  oneOf,
  text,
  texts,
} from '../common.ts'

const { Optional } = Type

/** A part of a pod in Kubernetes' form, validated by the API server that creates the pod. */
const native = (description: string) =>
  Type.Unsafe<Readonly<Record<string, unknown>>>({
    type: 'object',
    'x-kubernetes-preserve-unknown-fields': true,
    description,
  })

const natives = (items: string, description: string) =>
  Type.Array(native(items), { maxItems: 64, 'x-kubernetes-list-type': 'atomic', description })

const warmPoolSchema = Type.Object(
  {
    template: label('SandboxTemplate of the namespace of the Agent.'),
    size: count('Pods that are kept ready in each namespace with Agents of this tier.', { maximum: 1000, default: 1 }),
  },
  { ...closed, description: 'Pods that run before any session requests them.' },
)

const podDefaultsSchema = Type.Object(
  {
    serviceAccountName: Optional(text('Service account of the pods.', { maxLength: 253 })),
    imagePullSecrets: Optional(texts('Names of Secrets that images are pulled with.', { maxItems: 16 })),
    nodeSelector: Optional(
      mapOf(Type.String({ maxLength: 63 }), { maxProperties: 64, description: 'Labels of nodes for the pods.' }),
    ),
    tolerations: Optional(natives('Toleration.', 'Taints that the pods tolerate.')),
    securityContext: Optional(native('Security context of the pod, over what is set without it.')),
    volumes: Optional(natives('Volume.', 'Further volumes; variables may name them by fileKeyRef.')),
    volumeMounts: Optional(natives('Mount in the container of the agent.', 'Where they are mounted.')),
  },
  { ...closed, description: 'What every pod of the tier has.' },
)

/** `TrustTier.spec` (cluster scope): where sessions of a tier run, and what they may. */
export const trustTierSpecSchema = Type.Object(
  {
    isolation: Optional(
      oneOf(['none', 'gvisor', 'kata', 'tee'], 'What is between a pod and its node.', { default: 'none' }),
    ),
    runtimeClassName: Optional(text('RuntimeClass that gives the isolation.', { maxLength: 253 })),
    attested: Optional(flag('Sessions get a token for attestation evidence alone.')),
    requireProof: Optional(texts('Checks that must have shown where a session runs.', { maxItems: 16 })),
    allowedProviderTools: Optional(texts('Caps model.providerTools of Agents; absent: no cap, empty: none.')),
    jurisdiction: Optional(jurisdiction()),
    maxSessionTTL: Optional(duration('Lifetime cap of sessions.')),
    warmPool: Optional(warmPoolSchema),
    allowedProfiles: Optional(
      Type.Array(oneOf(['default', 'browser', 'codeInterpreter'], 'Profile.'), {
        maxItems: 3,
        description: 'Profiles that Agents of the tier may have; absent: every one.',
      }),
    ),
    podDefaults: Optional(podDefaultsSchema),
  },
  {
    ...closed,
    'x-kubernetes-validations': [
      {
        rule: "!has(self.isolation) || self.isolation == 'none' || (has(self.runtimeClassName) && self.runtimeClassName != '')",
        message: 'isolation requires runtimeClassName',
        fieldPath: '.runtimeClassName',
        reason: 'FieldValueRequired',
      },
    ],
  },
)

export const trustTierStatusSchema = Type.Object(
  {
    conditions: Optional(conditions()),
    observedGeneration: Optional(longCount('Generation that the status was written for.')),
  },
  closed,
)

export type TrustTierSpec = Static<typeof trustTierSpecSchema>
