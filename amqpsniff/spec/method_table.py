# ruff: noqa: E501 (one row, one line)
"""Every method of AMQP 0-8, 0-9 and 0-9-1 and of the brokers' extensions, one a line.

Columns: dialects (8, 9, 1 for 0-8, 0-9, 0-9-1) · source · class/method id · who sends it · kind ·
name · arguments · `>` what answers it · `#` a note.

An argument is `name:type`; the types are o octet, h short, l long, L longlong, b bit, s short
string, S long string, T timestamp, F field table, C the 0-9 `content` domain (a discriminator octet
and a long string). `!` behind the type marks a secret. `?` in place of arguments: they are not
known. Kind: `sync` when the sender waits for an answer, `content` when a content header follows.

The order of lines with one id is the order of preference in a dialect: what the dialect's usual
broker would read comes first. Names are the 0-9-1 specification's; what 0-9-1 calls reserved keeps
the name it had before, or has in RabbitMQ.

Sources: the specifications of the three dialects, RabbitMQ's 0-8 and 0-9-1 definitions, those
shipped with Qpid (for 0-9 its preview of classes of 0-10), OpenAMQ's protocol classes. RabbitMQ's
extensions of 0-9-1 are rows of 0-9 too, for it serves a 0-9 header with 0-9-1 methods.
"""

METHOD_TABLE = """
# connection
891 spec     10/10 server sync    connection.start    version_major:o version_minor:o server_properties:F mechanisms:S locales:S > start-ok
891 spec     10/11 client -       connection.start-ok client_properties:F mechanism:s response:S! locale:s
891 spec     10/20 server sync    connection.secure   challenge:S > secure-ok
891 spec     10/21 client -       connection.secure-ok response:S!
891 spec     10/30 server sync    connection.tune     channel_max:h frame_max:l heartbeat:h > tune-ok
891 spec     10/31 client -       connection.tune-ok  channel_max:h frame_max:l heartbeat:h
89  spec     10/40 client sync    connection.open     virtual_host:s capabilities:s insist:b > open-ok redirect
1   spec     10/40 client sync    connection.open     virtual_host:s capabilities:s insist:b > open-ok
891 spec     10/41 server -       connection.open-ok  known_hosts:s
9   spec     10/42 server -       connection.redirect host:s known_hosts:s
8   spec     10/50 server -       connection.redirect host:s known_hosts:s # 10/50 is close in 0-9 and 0-9-1
91  spec     10/50 both   sync    connection.close    reply_code:h reply_text:s class_id:h method_id:h > close-ok # 10/50 is redirect in 0-8
91  spec     10/51 both   -       connection.close-ok
8   spec     10/60 both   sync    connection.close    reply_code:h reply_text:s class_id:h method_id:h > close-ok # 10/60 is blocked in RabbitMQ's 0-9-1
91  rabbitmq 10/60 server -       connection.blocked  reason:s # sent when an alarm stops publishers; 10/60 is close in 0-8
8   spec     10/61 both   -       connection.close-ok # 10/61 is unblocked in RabbitMQ's 0-9-1
91  rabbitmq 10/61 server -       connection.unblocked # 10/61 is close-ok in 0-8
91  rabbitmq 10/70 client sync    connection.update-secret new_secret:S! reason:s > update-secret-ok # RabbitMQ's XML names the client as receiver; clients send it
91  rabbitmq 10/71 server -       connection.update-secret-ok

# channel
891 spec     20/10 client sync    channel.open        out_of_band:s > open-ok
8   spec     20/11 server -       channel.open-ok     # without arguments in 0-8 only
91  spec     20/11 server -       channel.open-ok     channel_id:S
891 spec     20/20 both   sync    channel.flow        active:b > flow-ok
891 spec     20/21 both   -       channel.flow-ok     active:b
8   spec     20/30 server -       channel.alert       reply_code:h reply_text:s details:F
891 spec     20/40 both   sync    channel.close       reply_code:h reply_text:s class_id:h method_id:h > close-ok
891 spec     20/41 both   -       channel.close-ok
9   spec     20/50 client -       channel.resume      channel_id:S > ok
9   spec     20/60 both   -       channel.ping        > ok
9   spec     20/70 both   -       channel.pong        > ok
9   spec     20/80 both   -       channel.ok

# access
89  spec     30/10 client sync    access.request      realm:s exclusive:b passive:b active:b write:b read:b > request-ok
1   rabbitmq 30/10 client sync    access.request      realm:s exclusive:b passive:b active:b write:b read:b > request-ok # not in 0-9-1; RabbitMQ answers ticket 1
89  spec     30/11 server -       access.request-ok   ticket:h
1   rabbitmq 30/11 server -       access.request-ok   ticket:h # not in 0-9-1

# exchange
891 spec     40/10 client sync    exchange.declare    ticket:h exchange:s type:s passive:b durable:b auto_delete:b internal:b no_wait:b arguments:F > declare-ok
891 spec     40/11 server -       exchange.declare-ok
891 spec     40/20 client sync    exchange.delete     ticket:h exchange:s if_unused:b no_wait:b > delete-ok
891 spec     40/21 server -       exchange.delete-ok
891 qpid     40/22 client sync    exchange.bound      exchange:s routing_key:s queue:s > bound-ok
891 qpid     40/23 server -       exchange.bound-ok   reply_code:h reply_text:s
91  rabbitmq 40/30 client sync    exchange.bind       ticket:h destination:s source:s routing_key:s no_wait:b arguments:F > bind-ok
9   qpid     40/30 client sync    exchange.query      ticket:h name:s > query-ok # preview of 0-10; 40/30 is bind in RabbitMQ
91  rabbitmq 40/31 server -       exchange.bind-ok
9   qpid     40/31 server -       exchange.query-ok   type:s durable:b not_found:b arguments:F # preview of 0-10; 40/31 is bind-ok in RabbitMQ
91  rabbitmq 40/40 client sync    exchange.unbind     ticket:h destination:s source:s routing_key:s no_wait:b arguments:F > unbind-ok
91  rabbitmq 40/51 server -       exchange.unbind-ok  # 51, not 41

# queue
891 spec     50/10 client sync    queue.declare       ticket:h queue:s passive:b durable:b exclusive:b auto_delete:b no_wait:b arguments:F > declare-ok
891 spec     50/11 server -       queue.declare-ok    queue:s message_count:l consumer_count:l
891 spec     50/20 client sync    queue.bind          ticket:h queue:s exchange:s routing_key:s no_wait:b arguments:F > bind-ok
891 spec     50/21 server -       queue.bind-ok
891 spec     50/30 client sync    queue.purge         ticket:h queue:s no_wait:b > purge-ok
891 spec     50/31 server -       queue.purge-ok      message_count:l
891 spec     50/40 client sync    queue.delete        ticket:h queue:s if_unused:b if_empty:b no_wait:b > delete-ok
891 spec     50/41 server -       queue.delete-ok     message_count:l
8   rabbitmq 50/50 client sync    queue.unbind        ticket:h queue:s exchange:s routing_key:s arguments:F > unbind-ok # not in 0-8; RabbitMQ adds it
91  spec     50/50 client sync    queue.unbind        ticket:h queue:s exchange:s routing_key:s arguments:F > unbind-ok
91  openamq  50/50 client sync    queue.unbind        ticket:h queue:s exchange:s routing_key:s no_wait:b arguments:F > unbind-ok # one octet more, before the table
8   rabbitmq 50/51 server -       queue.unbind-ok     # not in 0-8; RabbitMQ adds it
91  spec     50/51 server -       queue.unbind-ok

# basic
891 spec     60/10 client sync    basic.qos           prefetch_size:l prefetch_count:h global:b > qos-ok
891 spec     60/11 server -       basic.qos-ok
8   spec     60/20 client sync    basic.consume       ticket:h queue:s consumer_tag:s no_local:b no_ack:b exclusive:b no_wait:b > consume-ok # without a table in 0-8 only
8   qpid     60/20 client sync    basic.consume       ticket:h queue:s consumer_tag:s no_local:b no_ack:b exclusive:b no_wait:b arguments:F > consume-ok # RabbitMQ refuses the table in 0-8
91  spec     60/20 client sync    basic.consume       ticket:h queue:s consumer_tag:s no_local:b no_ack:b exclusive:b no_wait:b arguments:F > consume-ok # 0-9 calls the table filter
891 spec     60/21 server -       basic.consume-ok    consumer_tag:s
891 spec     60/30 both   sync    basic.cancel        consumer_tag:s no_wait:b > cancel-ok # sent by RabbitMQ when a queue goes away: no reply is required then
891 spec     60/31 both   -       basic.cancel-ok     consumer_tag:s
891 spec     60/40 client content basic.publish       ticket:h exchange:s routing_key:s mandatory:b immediate:b
891 spec     60/50 server content basic.return        reply_code:h reply_text:s exchange:s routing_key:s
891 spec     60/60 server content basic.deliver       consumer_tag:s delivery_tag:L redelivered:b exchange:s routing_key:s
891 spec     60/70 client sync    basic.get           ticket:h queue:s no_ack:b > get-ok get-empty
891 spec     60/71 server content basic.get-ok        delivery_tag:L redelivered:b exchange:s routing_key:s message_count:l
891 spec     60/72 server -       basic.get-empty     cluster_id:s # OpenAMQ calls the argument sender-id
8   spec     60/80 client -       basic.ack           delivery_tag:L multiple:b
91  spec     60/80 both   -       basic.ack           delivery_tag:L multiple:b # sent by the server it confirms a publish
891 spec     60/90 client -       basic.reject        delivery_tag:L requeue:b
8   spec     60/100 client -      basic.recover       requeue:b > recover-ok # only Qpid answers, with 60/101
9   spec     60/100 client -      basic.recover       requeue:b
1   spec     60/100 client -      basic.recover-async requeue:b
8   rabbitmq 60/100 client -      basic.recover-async requeue:b # RabbitMQ's name in 0-8 too
1   qpid     60/100 client -      basic.recover       requeue:b # Qpid keeps the older name
8   qpid     60/101 server -      basic.recover-ok
9   qpid     60/101 server -      basic.recover-sync-ok
9   qpid     60/102 client sync   basic.recover-sync  requeue:b > recover-sync-ok
1   spec     60/110 client sync   basic.recover       requeue:b > recover-ok
89  rabbitmq 60/110 client sync   basic.recover       requeue:b > recover-ok # not in 0-8 and 0-9; RabbitMQ adds it
1   qpid     60/110 client sync   basic.recover-sync  requeue:b > recover-sync-ok # Qpid's name
1   spec     60/111 server -      basic.recover-ok
89  rabbitmq 60/111 server -      basic.recover-ok    # not in 0-8 and 0-9; RabbitMQ adds it
1   qpid     60/111 server -      basic.recover-sync-ok # Qpid's name
91  rabbitmq 60/120 both   -      basic.nack          delivery_tag:L multiple:b requeue:b # sent by the server it refuses a publish; Qpid Broker-J has it too
91  rabbitmq 60/200 client sync   basic.credit        consumer_tag:s credit:l drain:b > credit-ok # RabbitMQ up to 3.13
91  rabbitmq 60/201 server -      basic.credit-ok     available:l
91  rabbitmq 60/202 server -      basic.credit-drained consumer_tag:s credit_drained:l

# file
89  spec     70/10 client sync    file.qos            prefetch_size:l prefetch_count:h global:b > qos-ok
89  spec     70/11 server -       file.qos-ok
8   spec     70/20 client sync    file.consume        ticket:h queue:s consumer_tag:s no_local:b no_ack:b exclusive:b no_wait:b > consume-ok
9   spec     70/20 client sync    file.consume        ticket:h queue:s consumer_tag:s no_local:b no_ack:b exclusive:b no_wait:b filter:F > consume-ok
89  spec     70/21 server -       file.consume-ok     consumer_tag:s
89  spec     70/30 client sync    file.cancel         consumer_tag:s no_wait:b > cancel-ok
89  spec     70/31 server -       file.cancel-ok      consumer_tag:s
89  spec     70/40 both   sync    file.open           identifier:s content_size:L > open-ok
89  spec     70/41 both   sync    file.open-ok        staged_size:L > stage
89  spec     70/50 both   content file.stage
89  spec     70/60 client -       file.publish        ticket:h exchange:s routing_key:s mandatory:b immediate:b identifier:s # its content was staged before
89  spec     70/70 server content file.return         reply_code:h reply_text:s exchange:s routing_key:s
89  spec     70/80 server -       file.deliver        consumer_tag:s delivery_tag:L redelivered:b exchange:s routing_key:s identifier:s # its content was staged before
89  spec     70/90 client -       file.ack            delivery_tag:L multiple:b
89  spec     70/100 client -      file.reject         delivery_tag:L requeue:b

# stream
89  spec     80/10 client sync    stream.qos          prefetch_size:l prefetch_count:h consume_rate:l global:b > qos-ok
89  spec     80/11 server -       stream.qos-ok
8   spec     80/20 client sync    stream.consume      ticket:h queue:s consumer_tag:s no_local:b exclusive:b no_wait:b > consume-ok
9   spec     80/20 client sync    stream.consume      ticket:h queue:s consumer_tag:s no_local:b exclusive:b no_wait:b filter:F > consume-ok
89  spec     80/21 server -       stream.consume-ok   consumer_tag:s
89  spec     80/30 client sync    stream.cancel       consumer_tag:s no_wait:b > cancel-ok
89  spec     80/31 server -       stream.cancel-ok    consumer_tag:s
89  spec     80/40 client content stream.publish      ticket:h exchange:s routing_key:s mandatory:b immediate:b
89  spec     80/50 server content stream.return       reply_code:h reply_text:s exchange:s routing_key:s
89  spec     80/60 server content stream.deliver      consumer_tag:s delivery_tag:L exchange:s queue:s

# confirm
91  rabbitmq 85/10 client sync    confirm.select      no_wait:b > select-ok # RabbitMQ drops a 0-8 connection that sends it; Qpid Broker-J has it too
91  rabbitmq 85/11 server -       confirm.select-ok

# tx
891 spec     90/10 client sync    tx.select           > select-ok
891 spec     90/11 server -       tx.select-ok
891 spec     90/20 client sync    tx.commit           > commit-ok
891 spec     90/21 server -       tx.commit-ok
891 spec     90/30 client sync    tx.rollback         > rollback-ok
891 spec     90/31 server -       tx.rollback-ok

# dtx
89  spec     100/10 client sync   dtx.select          > select-ok
89  spec     100/11 server -      dtx.select-ok
89  spec     100/20 client sync   dtx.start           dtx_identifier:s > start-ok
89  spec     100/21 server -      dtx.start-ok

# dtx-demarcation and dtx-coordination
9   qpid     101/10 client sync   dtx-demarcation.select > select-ok
9   qpid     101/11 server -      dtx-demarcation.select-ok
9   qpid     101/20 client sync   dtx-demarcation.start ticket:h xid:S join:b resume:b > start-ok
9   qpid     101/21 server -      dtx-demarcation.start-ok flags:h
9   qpid     101/30 client sync   dtx-demarcation.end ticket:h xid:S fail:b suspend:b > end-ok
9   qpid     101/31 server -      dtx-demarcation.end-ok flags:h
9   qpid     105/10 client sync   dtx-coordination.commit ticket:h xid:S one_phase:b > commit-ok
9   qpid     105/11 server -      dtx-coordination.commit-ok flags:h
9   qpid     105/20 client sync   dtx-coordination.forget ticket:h xid:S > forget-ok
9   qpid     105/21 server -      dtx-coordination.forget-ok
9   qpid     105/30 client sync   dtx-coordination.get-timeout xid:S > get-timeout-ok
9   qpid     105/31 server -      dtx-coordination.get-timeout-ok timeout:l
9   qpid     105/40 client sync   dtx-coordination.prepare ticket:h xid:S > prepare-ok
9   qpid     105/41 server -      dtx-coordination.prepare-ok flags:h
9   qpid     105/50 client sync   dtx-coordination.recover ticket:h startscan:b endscan:l > recover-ok # endscan is long here and a bit in the later preview
9   qpid     105/51 server -      dtx-coordination.recover-ok xids:F
9   qpid     105/60 client sync   dtx-coordination.rollback ticket:h xid:S > rollback-ok
9   qpid     105/61 server -      dtx-coordination.rollback-ok flags:h
9   qpid     105/70 client sync   dtx-coordination.set-timeout ticket:h xid:S timeout:l > set-timeout-ok
9   qpid     105/71 server -      dtx-coordination.set-timeout-ok

# tunnel
89  spec     110/10 client content tunnel.request     meta_data:F

# test in 0-8, message in 0-9
8   spec     120/10 both sync     test.integer        integer_1:o integer_2:h integer_3:l integer_4:L operation:o > integer-ok
8   spec     120/11 both -        test.integer-ok     result:L
8   spec     120/20 both sync     test.string         string_1:s string_2:S operation:o > string-ok
8   spec     120/21 both -        test.string-ok      result:S
8   spec     120/30 both sync     test.table          table:F integer_op:o string_op:o > table-ok
8   spec     120/31 both -        test.table-ok       integer_result:L string_result:S
8   spec     120/40 both sync+content test.content    > content-ok
8   spec     120/41 both content  test.content-ok     content_checksum:l
9   spec     120/10 both -        message.transfer    ticket:h destination:s redelivered:b immediate:b ttl:L priority:o timestamp:T delivery_mode:o expiration:T exchange:s routing_key:s message_id:s correlation_id:s reply_to:s content_type:s content_encoding:s user_id:s app_id:s transaction_id:s security_token:S application_headers:F body:C > ok reject
9   qpid     120/10 both -        message.transfer    ? > ok reject # with a mandatory bit more, whose place is not known
9   spec     120/20 client -      message.consume     ticket:h queue:s destination:s no_local:b no_ack:b exclusive:b filter:F > ok
9   spec     120/30 client -      message.cancel      destination:s > ok
9   spec     120/40 client -      message.get         ticket:h queue:s destination:s no_ack:b > ok empty
9   spec     120/50 client -      message.recover     requeue:b > ok
9   spec     120/60 both -        message.open        reference:S > ok
9   spec     120/70 both -        message.close       reference:S > ok
9   spec     120/80 both -        message.append      reference:S bytes:S > ok
9   spec     120/90 both -        message.checkpoint  reference:S identifier:s > ok
9   spec     120/100 both -       message.resume      reference:S identifier:s > offset
9   spec     120/110 client -     message.qos         prefetch_size:l prefetch_count:h global:b > ok
9   spec     120/500 both -       message.ok
9   spec     120/510 both -       message.empty
9   spec     120/520 both -       message.reject      code:h text:s
9   spec     120/530 both -       message.offset      value:L

# binding and execution
9   qpid     130/10 client sync   binding.query       ticket:h exchange:s queue:s routing_key:s arguments:F > query-ok
9   qpid     130/11 server -      binding.query-ok    exchange_not_found:b queue_not_found:b queue_not_matched:b key_not_matched:b args_not_matched:b
9   qpid     140/10 both   -      execution.flush     ? # id from the preview of 0-10
9   qpid     140/20 both   -      execution.complete  ? # id from the preview of 0-10
9   qpid     140/30 both   -      execution.noop      ? # id from the preview of 0-10
9   qpid     140/40 both   -      execution.result    ? # id from the preview of 0-10
9   qpid     140/50 both   -      execution.sync      ? # id from the preview of 0-10

# cluster, direct and restms
91  openamq  61440/10 both -      cluster.hello       version:h name:s vhost:s signature:l
91  openamq  61440/20 both -      cluster.status      active:b connections:l messages:l allocation:l exchanges:l queues:l consumers:l bindings:l peers:l
91  openamq  61440/20 both -      cluster.status      master:b heartbeat:h connections:l messages:l allocation:l exchanges:l queues:l consumers:l bindings:l peers:l # of an older release
91  openamq  61440/30 both -      cluster.bind        exchange:s routing_key:s arguments:F # of an older release; the id is inferred from the order of methods
91  openamq  61500/10 client sync direct.put          sink:s > put-ok
91  openamq  61500/11 server -    direct.put-ok       lease:s
91  openamq  61500/20 client sync direct.get          feed:s > get-ok
91  openamq  61500/21 server -    direct.get-ok       lease:s
91  openamq  61501/10 client -    restms.pipe-create  pipe_type:s pipe_name:s
91  openamq  61501/20 client -    restms.pipe-delete  pipe_name:s
91  openamq  61501/30 client -    restms.feed-create  feed_type:s feed_name:s
91  openamq  61501/40 client -    restms.feed-delete  feed_name:s
91  openamq  61501/50 client -    restms.join-create  pipe_name:s feed_name:s address:s
91  openamq  61501/60 client -    restms.join-delete  pipe_name:s feed_name:s address:s
"""
"""The table as text; `amqpsniff.spec.methods` makes rows of it."""
