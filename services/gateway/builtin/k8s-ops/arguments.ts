import Type from 'typebox'

/** Arguments shared by tools, safe as path segments. */

export const kind = Type.String({
  pattern: '^[A-Za-z][A-Za-z0-9-]{0,62}$',
  description: 'Kind of the objects, such as Pod or Deployment.',
})

export const apiVersion = Type.String({
  pattern: '^(?:[a-z0-9]+(?:[-.][a-z0-9]+)*/)?v[0-9]+(?:(?:alpha|beta)[0-9]+)?$',
  maxLength: 253,
  description:
    'Group and version of the kind, such as cert-manager.io/v1; may be left out for kinds of Kubernetes itself.',
})

export const namespace = Type.String({
  pattern: '^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$',
  description: 'Namespace of the object.',
})

/** A path segment: neither `.` nor `..`, and without separators. */
export const name = Type.String({
  pattern: '^(?!\\.{1,2}$)[^/%\\s?#]+$',
  maxLength: 253,
  description: 'Name of the object.',
})
